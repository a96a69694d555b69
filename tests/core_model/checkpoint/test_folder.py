"""What lies at a path: every way people keep a model, and what is asked or said when it is not one."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.folder import SeveralFilesError, locate
from core_model.errors import CheckpointError
from tests.core_model.checkpoint import tiny

N_TENSORS = len(tiny.tensors())


def opens_whole(path: Path) -> tuple[str, ...]:
    """The warnings of a path that opens as the whole model, tokenizer aside."""
    with open_checkpoint(path) as checkpoint:
        assert len(checkpoint.tensors) == N_TENSORS
        assert checkpoint.info.refusal is None
        assert checkpoint.load_model() is not None
        return tuple(warning for warning in checkpoint.info.warnings if "tokenizer" not in warning)


@pytest.mark.parametrize("name", ["", "model.safetensors", "config.json"])
def test_a_folder_its_weights_or_its_config_open_the_model(name: str, tmp_path: Path) -> None:
    assert opens_whole(tiny.write(tmp_path) / name) == ()


@pytest.mark.parametrize("name", ["MODEL.SAFETENSORS", "weights.safetensors", "pytorch_model.safetensors"])
def test_weights_under_another_name_are_found(name: str, tmp_path: Path) -> None:
    (tiny.write(tmp_path) / "model.safetensors").rename(tmp_path / name)
    assert opens_whole(tmp_path) == ()


def test_hidden_files_that_macos_leaves_are_not_seen(tmp_path: Path) -> None:
    tiny.write(tmp_path)
    for name in ("._model.safetensors", "._config.json"):
        (tmp_path / name).write_bytes(b"\x00\x05\x16\x07\x00\x02\x00\x00")
    assert opens_whole(tmp_path) == ()


@pytest.mark.parametrize("picked", ["", "model.safetensors.index.json"])
def test_shards_open_by_folder_or_index(picked: str, tmp_path: Path) -> None:
    tiny.write_shards(tmp_path)
    assert opens_whole(tmp_path / picked) == ()


def test_one_shard_opens_the_whole_model_and_says_so(tmp_path: Path) -> None:
    _, second = tiny.write_shards(tmp_path)
    assert "is one shard" in opens_whole(second)[0]


def test_a_file_beside_a_broken_index_opens_and_the_index_is_named(tmp_path: Path) -> None:
    (tiny.write(tmp_path) / "model.safetensors.index.json").write_text("{")
    assert "model.safetensors.index.json" in opens_whole(tmp_path / "model.safetensors")[0]


def test_complete_shards_without_an_index_are_opened(tmp_path: Path) -> None:
    first, _ = tiny.write_shards(tmp_path)
    (tmp_path / "model.safetensors.index.json").unlink()
    for path in (tmp_path, first):
        assert "index" in opens_whole(path)[0]


def test_a_cache_entry_leads_to_the_snapshot_its_main_branch_names(tmp_path: Path) -> None:
    """The layout of the Hugging Face cache: blobs, and snapshots of links to them."""
    entry = tmp_path / "models--someone--tiny-gpt2"
    for revision in ("0a1b", "ffff"):
        snapshot = entry / "snapshots" / revision
        snapshot.mkdir(parents=True)
        blobs = tiny.write(entry / "blobs" / revision)
        for file in blobs.iterdir():
            (snapshot / file.name).symlink_to(os.path.relpath(file, snapshot))
    (entry / "refs").mkdir()
    (entry / "refs" / "main").write_text("0a1b")
    location = locate(entry)
    assert location.folder == entry / "snapshots" / "0a1b"
    assert location.name == "someone/tiny-gpt2"
    assert opens_whole(entry) == ()
    assert locate(entry / "snapshots" / "ffff").name == "someone/tiny-gpt2"
    with pytest.raises(SeveralFilesError, match="models--someone--tiny-gpt2") as caught:
        locate(tmp_path)
    assert caught.value.choices == (entry,)


def test_several_models_in_one_folder_are_asked_about(tmp_path: Path) -> None:
    tiny.write(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "a.safetensors")
    shutil.copy(tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    with pytest.raises(SeveralFilesError, match=r"more than one model.*choose") as caught:
        open_checkpoint(tmp_path)
    assert caught.value.choices == (tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert opens_whole(caught.value.choices[1]) == ()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("pytorch_model.bin", b"PK\x03\x04" + bytes(30) + b"archive/data.pkl", "pickle"),
        ("tf_model.h5", b"\x89HDF\r\n\x1a\n", "HDF5"),
        ("model.gguf", b"GGUF", "GGUF"),
        ("model.onnx", b"\x08\x08\x12\x07pytorch", "ONNX"),
        ("flax_model.msgpack", b"\x82\xa1a", "flax_model.msgpack"),
        ("notes.txt", b"hello", "no .safetensors file"),
    ],
)
def test_a_folder_without_safetensors_names_what_it_holds(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=said) as caught:
        open_checkpoint(tmp_path)
    assert "safetensors" in str(caught.value)


def test_a_diffusers_pipeline_is_named_with_the_folder_to_open(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text("{}")
    with pytest.raises(CheckpointError, match="text_encoder"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("path", ["nothing here", "x" * 300, "a\0b"])
def test_a_path_that_is_not_there_is_said(path: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        open_checkpoint(tmp_path / path)


def test_an_adapter_is_named_with_its_base_model(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "someone/base"}))
    save_file({"a.lora_A.weight": np.zeros((2, 3), np.float32)}, tmp_path / "adapter_model.safetensors")
    for path in (tmp_path, tmp_path / "adapter_model.safetensors"):
        with open_checkpoint(path) as checkpoint:
            assert list(checkpoint.tensors) == ["a.lora_A.weight"]
            assert checkpoint.info.family is None
            assert "adapter (LoRA" in (checkpoint.info.refusal or "")
            with pytest.raises(CheckpointError, match="someone/base"):
                checkpoint.load_model()


# Indexes


def test_a_missing_shard_is_named_with_its_tensors_and_the_other_can_be_browsed(tmp_path: Path) -> None:
    first, second = tiny.write_shards(tmp_path)
    lost = next(iter(load_file(second)))
    second.unlink()
    with pytest.raises(CheckpointError, match=r"model-00002-of-00002\.safetensors is missing") as caught:
        open_checkpoint(tmp_path)
    assert lost in str(caught.value)
    with open_checkpoint(first) as checkpoint:
        assert len(checkpoint.tensors) == N_TENSORS // 2
        assert "model-00002-of-00002" in checkpoint.info.warnings[0]
        assert lost in checkpoint.info.missing
        with pytest.raises(CheckpointError, match="missing from the file"):
            checkpoint.load_model()


@pytest.mark.parametrize(
    "target",
    [
        "https://example.com/x.safetensors",
        "..\\..\\x",
        "C:\\x",
        "../model.safetensors",
        "/etc/passwd",
        "..",
        "",
        "a\0b",
    ],
)
def test_an_index_never_leads_out_of_its_folder(target: str, tmp_path: Path) -> None:
    tiny.write_index(tiny.write(tmp_path / "model"), {"transformer.wte.weight": target})
    (tmp_path / "model" / "model.safetensors").rename(tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="valid path"):
        open_checkpoint(tmp_path / "model")


@pytest.mark.parametrize("weight_map", [{"a": 1}, [], None, "x", {}])
def test_an_index_without_a_map_of_file_names_is_refused(weight_map: object, tmp_path: Path) -> None:
    tiny.write_shards(tmp_path)
    tiny.write_index(tmp_path, weight_map)
    with pytest.raises(CheckpointError, match="weight_map"):
        open_checkpoint(tmp_path)


def test_the_files_are_believed_over_a_stale_index(tmp_path: Path) -> None:
    first, second = tiny.write_shards(tmp_path)
    every = [*load_file(first), *load_file(second)]
    swapped = {name: second.name if name in load_file(first) else first.name for name in every[1:]}
    tiny.write_index(tmp_path, {**swapped, "transformer.h.7.ln_1.bias": first.name})
    warnings = opens_whole(tmp_path)
    assert any("in another shard" in warning for warning in warnings)
    assert any("missing from every shard" in warning and "h.7.ln_1.bias" in warning for warning in warnings)
    assert any("does not list" in warning and every[0] in warning for warning in warnings)


def test_of_a_tensor_stored_twice_the_one_the_index_names_is_used(tmp_path: Path) -> None:
    first, second = tiny.write_shards(tmp_path)
    name = next(iter(load_file(first)))
    other = load_file(second) | {name: load_file(first)[name] + 1}
    save_file(other, second)
    assert any("stored twice" in warning for warning in opens_whole(tmp_path))
    with open_checkpoint(tmp_path) as checkpoint:
        np.testing.assert_array_equal(checkpoint.read_tensor(name), load_file(first)[name])


def test_the_checkpoints_of_a_training_are_asked_about_in_order_of_their_steps(tmp_path: Path) -> None:
    choices = [tmp_path / f"checkpoint-{step}" for step in (500, 1000, 10000)]
    for folder in choices:
        tiny.write(folder)
    (tmp_path / "training_args.bin").write_bytes(b"PK\x03\x04" + bytes(30) + b"archive/data.pkl")
    with pytest.raises(
        SeveralFilesError, match=r"holds no model, but 3 checkpoints .*checkpoint-500, .*choose"
    ) as caught:
        locate(tmp_path)
    assert caught.value.choices == tuple(choices)


def test_each_kind_of_input_is_read_beside_the_adapter_that_has_it(tmp_path: Path) -> None:
    """Never a mixture: what belongs to the base's tokenizer is nothing to another."""
    base, adapter = tiny.write(tmp_path / "base"), tmp_path / "adapter"
    adapter.mkdir()
    for path in (base / "vocab.txt", base / "added_tokens.json", adapter / "tokenizer.json"):
        path.write_text("{}")
    (base / "preprocessor_config.json").write_text("{}")
    location = replace(locate(base), adapter=adapter)
    assert location.input_files == (adapter / "tokenizer.json", base / "preprocessor_config.json")
    (adapter / "processor_config.json").write_text("{}")
    assert location.input_files == (adapter / "tokenizer.json", adapter / "processor_config.json")
