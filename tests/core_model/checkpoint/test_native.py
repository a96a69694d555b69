"""Our own run folders: written all at once, read back to the bit, refused by the field that is wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core_model.checkpoint import native, open_checkpoint, writing
from core_model.checkpoint.config_codec import config_from_json, config_to_json
from core_model.checkpoint.native import save_run_model
from core_model.config import AudioEmbedding, ModelConfig, PatchEmbedding, VectorEmbedding
from core_model.errors import CheckpointError, ConfigError, CoreError
from core_model.nn.transformer import Transformer
from core_model.shapes import tensor_shapes
from core_model.tokenize.native import CharacterTokenizer
from core_model.trace import Inputs, run_trace
from tests.core_model.checkpoint.configs import EVERY, WIDTH, mixture, translator

TOKENIZER = CharacterTokenizer.of_text("abcdefgh", special=("<s>", "</s>", "<pad>"))


@pytest.fixture(params=EVERY)
def config(request: pytest.FixtureRequest) -> ModelConfig:
    """Configs that between them use every kind of part."""
    return EVERY[request.param]()


def model_of(config: ModelConfig, seed: int = 0) -> Transformer:
    """A model with random weights."""
    torch.manual_seed(seed)
    return Transformer(config).eval()


def inputs_for(config: ModelConfig) -> Inputs:
    """Something that the model reads."""
    first = next(iter(config.stacks.values())).embedding
    decoder_ids = [2, 7] if config.encoder and config.decoder else None
    rng = np.random.default_rng(0)
    if isinstance(first, PatchEmbedding):
        return Inputs(pixels=rng.normal(size=(first.n_channels, *first.image_size)))
    if isinstance(first, AudioEmbedding):
        return Inputs(features=rng.normal(size=(first.n_features, 7)), decoder_ids=decoder_ids)
    if isinstance(first, VectorEmbedding):
        memory, read = rng.normal(size=(4, WIDTH)), rng.normal(size=(2, WIDTH))
        return Inputs(embeddings=memory, decoder_embeddings=read)
    return Inputs(ids=[3, 4, 5, 6], decoder_ids=decoder_ids)


def test_shapes_from_the_config_are_those_of_the_module(config: ModelConfig) -> None:
    state = Transformer(config).state_dict()
    assert tensor_shapes(config) == {name: tuple(tensor.shape) for name, tensor in state.items()}


def test_a_config_survives_json(config: ModelConfig) -> None:
    assert config_from_json(json.loads(json.dumps(config_to_json(config)))) == config


def test_a_saved_model_opens_with_equal_weights_and_outputs(config: ModelConfig, tmp_path: Path) -> None:
    model = model_of(config)
    save_run_model(tmp_path / "run", model, TOKENIZER, {"run.json": {"version": 1}})
    with open_checkpoint(tmp_path / "run") as checkpoint:
        assert checkpoint.info.family == "native"
        assert checkpoint.info.refusal is None
        assert checkpoint.config == config
        of_files = ("pictures", "sounds")  # how they become numbers is not the model's, and nothing here says it
        assert {fact.origin for fact in checkpoint.info.facts if fact.name not in of_files} == {"stated"}
        loaded = checkpoint.load_model()
    assert loaded.state_dict().keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    got, want = (run_trace(each, inputs_for(config)) for each in (loaded, model))
    np.testing.assert_array_equal(got.hidden, want.hidden)
    if config.head is not None:
        assert got.logits is not None and want.logits is not None
        np.testing.assert_array_equal(got.logits, want.logits)


def test_text_and_target_become_the_inputs_of_both_sides(tmp_path: Path) -> None:
    """The decoder is fed its start token, then the target without its end (teacher forcing)."""
    save_run_model(tmp_path / "run", model_of(translator()), TOKENIZER, {})
    with open_checkpoint(tmp_path / "run") as checkpoint:
        inputs = checkpoint.encode("abc", target="cba")
        assert list(np.asarray(inputs.ids)) == [3, 4, 5]
        assert list(np.asarray(inputs.decoder_ids)) == [2, 5, 4, 3]
        assert inputs.decoder_tokens is not None
        assert inputs.decoder_tokens.texts == ("<pad>", "c", "b", "a")
        assert list(np.asarray(checkpoint.encode("abc").decoder_ids)) == [2]


def test_saving_again_replaces_its_own_files_and_leaves_what_else_is_there(tmp_path: Path) -> None:
    config, run = translator(), tmp_path / "run"
    save_run_model(run, model_of(config), TOKENIZER, {"run.json": {"step": 1}})
    (run / "figures").mkdir()
    (run / "notes.txt").write_text("mine")
    save_run_model(run, model_of(config, seed=1), TOKENIZER, {"run.json": {"step": 2}})
    assert (run / "notes.txt").read_text() == "mine"
    assert (run / "figures").is_dir()
    assert json.loads((run / "run.json").read_text()) == {"step": 2}
    with open_checkpoint(run) as checkpoint:
        saved = checkpoint.load_model().state_dict()
    assert all(torch.equal(saved[name], tensor) for name, tensor in model_of(config, seed=1).state_dict().items())
    assert list(tmp_path.iterdir()) == [run]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    save_run_model(tmp_path / "run", model_of(translator()), None, {})
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["config.json", "model.safetensors"]


def test_hidden_folders_beside_the_run_are_not_ours_to_remove(tmp_path: Path) -> None:
    mine = [tmp_path / f".run{ending}" for ending in ("", ".new", ".old", ".part")]
    for folder in mine:
        folder.mkdir()
        (folder / "thesis.txt").write_text("years of work")
    save_run_model(tmp_path / "run", model_of(translator()), None, {})
    assert all((folder / "thesis.txt").exists() for folder in mine)


def test_a_failed_save_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_run_model(tmp_path / "run", model_of(translator()), TOKENIZER, {"run.json": {"step": 1}})
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(native, "write_json", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_run_model(tmp_path / "run", model_of(translator(), seed=1), TOKENIZER, {})
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_a_disk_that_refuses_the_weights_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(OSError, match=r"model\.safetensors"):
        writing.write_weights(tmp_path, {"x": torch.ones(2)})


def test_a_file_in_the_place_of_the_folder_is_kept(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(CheckpointError, match="is a file"):
        save_run_model(tmp_path / "run", model_of(translator()), None, {})
    assert (tmp_path / "run").read_text() == "mine"


def _set(document: dict[str, Any], place: str, value: object) -> None:
    *path, last = place.split(".")
    for key in path:
        document = document[int(key)] if key.isdigit() else document[key]  # pyright: ignore[reportArgumentType]
    document[last] = value


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("version", 2, "version 2"),
        ("config", [], "config is"),
        ("config.encoder.layers.1.attention.n_heads", "3", r"encoder\.layers\[1\]\.attention\.n_heads is '3'"),
        ("config.encoder.layers.1.attention.n_heads", 4.0, "n_heads is 4.0"),
        ("config.encoder.layers.1.attention.n_heads", True, "n_heads is True"),
        ("config.encoder.layers.1.attention.n_heads", 0, "n_heads is 0"),
        ("config.encoder.layers.1.attention.scale", 10**400, "scale"),
        ("config.encoder.layers.1.attention.position.type", "magic", "'magic'"),
        ("config.encoder.layers.1.attention.position.type", [], "position"),
        ("config.encoder.layers.1.attention.normalizer", "max", "normalizer is 'max'"),
        ("config.encoder.layers", 3, "layers is 3"),
        ("config.encoder.layers", [], "layers"),
        ("config.encoder.wheels", 3, "unknown field 'wheels'"),
        ("config.decoder.embedding", None, "embedding is None"),
        ("config.head.task", "poetry", "task is 'poetry'"),
    ],
)
def test_a_wrong_field_is_a_config_error_that_names_its_place(
    place: str, value: object, said: str, tmp_path: Path
) -> None:
    save_run_model(tmp_path / "run", model_of(translator()), None, {})
    path = tmp_path / "run" / "config.json"
    document = json.loads(path.read_text())
    _set(document, place, value)
    path.write_text(json.dumps(document))
    with open_checkpoint(tmp_path / "run") as checkpoint:
        assert checkpoint.tensors
        with pytest.raises(ConfigError, match=said):
            checkpoint.load_model()


def test_sizes_that_the_tensors_deny_are_refused_before_anything_is_built(tmp_path: Path) -> None:
    save_run_model(tmp_path / "run", model_of(translator()), None, {})
    config = translator()
    encoder, decoder = (
        replace(stack, embedding=replace(stack.embedding, vocab_size=10**12)) for stack in config.stacks.values()
    )
    document = native.config_document(replace(config, encoder=encoder, decoder=decoder, head=None))
    (tmp_path / "run" / "config.json").write_text(json.dumps(document))
    with open_checkpoint(tmp_path / "run") as checkpoint, pytest.raises(CheckpointError, match="expected"):
        checkpoint.load_model()


def _places(document: object, found: list[tuple[Callable[[object], None], object]]) -> None:
    """Every value of a document with a function that replaces it."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        found.append((lambda new, key=key: document.__setitem__(key, new), value))  # pyright: ignore
        _places(value, found)


@settings(max_examples=300)
@given(
    name=st.sampled_from(list(EVERY)),
    data=st.data(),
    value=st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just([]), st.just({})
    ),
)
def test_any_change_to_a_config_is_a_config_or_a_config_error(name: str, data: st.DataObject, value: object) -> None:
    document = config_to_json(EVERY[name]())
    found: list[tuple[Callable[[object], None], object]] = []
    _places(document, found)
    replace_value, _ = data.draw(st.sampled_from(found))
    replace_value(value)
    try:
        config = config_from_json(document)
    except CoreError as error:
        assert isinstance(error, ConfigError)
    else:
        assert config_from_json(config_to_json(config)) == config


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_weights_are_as_readable_as_any_other_file_of_the_person(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    writing.write_weights(tmp_path, {"a": torch.zeros(2)})
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_nothing_else_is_assumed_of_a_run_folder_than_it_states(tmp_path: Path) -> None:
    run = tmp_path / "run"
    save_run_model(run, model_of(mixture()), None, {})
    with open_checkpoint(run, assume={"n_heads": 6}) as checkpoint:
        assert checkpoint.info.refusal is None
    with open_checkpoint(run, assume={"n_heads": 4}) as checkpoint:
        assert "n_heads was given as 4, but heads is 6 by config.json" in (checkpoint.info.refusal or "")
    with open_checkpoint(run, assume={"wheels": 4}) as checkpoint:
        assert "'wheels' cannot be assumed" in (checkpoint.info.refusal or "")
