"""Checkpoints written anew: runs, adapters and other families' files as folders the transformers library opens."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.convert import convert
from core_model.checkpoint.native import save_run_model
from core_model.errors import CheckpointError, ConfigError
from core_model.nn.transformer import Transformer
from core_model.trace import Inputs, run_trace
from explorer.samples import SAMPLES_FOLDER
from tests.core_model.checkpoint import tiny
from tests.core_model.checkpoint.adapters import gpt2_adapter
from tests.core_model.checkpoint.configs import EVERY
from tests.core_model.checkpoint.references import logits_of, reference

IDS = (3, 1, 4, 1, 5)


def ours(folder: Path, base: Path | None = None) -> np.ndarray:
    with open_checkpoint(folder, assume={"base": base} if base else None) as checkpoint:
        logits = run_trace(checkpoint.load_model(), Inputs(ids=IDS)).logits
    assert logits is not None
    return logits


def test_a_merged_adapter_gives_the_library_the_same_logits(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    folder, _ = gpt2_adapter(tmp_path / "adapter")
    assert convert(folder, tmp_path / "out", assume={"base": base}).key == "gpt2"
    theirs = logits_of(reference(AutoModelForCausalLM.from_pretrained(tmp_path / "out"), IDS))
    np.testing.assert_allclose(theirs, ours(folder, base), atol=2e-3, rtol=1e-4)
    assert not np.allclose(theirs, ours(base), atol=0.1)


@pytest.mark.parametrize("family", ["gpt_neox", "starcoder2", "falcon"])
def test_a_model_trained_here_gives_the_library_the_same_logits(family: str, tmp_path: Path) -> None:
    """Its embedding is scaled and its head tied: the scale goes into the table, the head gets its own weight."""
    sample = SAMPLES_FOLDER / "tiny-language-model"
    assert convert(sample, tmp_path / "out", family).key == family
    with torch.no_grad():  # as its users call it: made eager, the Falcon of the library computes something else
        theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out")(torch.tensor([IDS])).logits[0].numpy()
    np.testing.assert_allclose(theirs, ours(sample), atol=2e-3, rtol=1e-4)


def test_another_family_that_can_express_the_model_may_be_asked_for(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    assert convert(base, tmp_path / "out", "gpt_bigcode").key == "gpt_bigcode"
    theirs = logits_of(reference(AutoModelForCausalLM.from_pretrained(tmp_path / "out"), IDS))
    np.testing.assert_allclose(theirs, ours(base), atol=2e-3, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_stays(dtype: str, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    base = tiny.write(tmp_path / "base")
    half = {name: torch.from_numpy(tensor).to(getattr(torch, dtype)) for name, tensor in tiny.tensors().items()}
    save_file(half, base / "model.safetensors")
    convert(base, tmp_path / "out")
    with safe_open(tmp_path / "out" / "model.safetensors", "pt") as file:
        assert {file.get_tensor(name).dtype for name in tiny.tensors()} == {getattr(torch, dtype)}
    assert json.loads((tmp_path / "out" / "config.json").read_text())["torch_dtype"] == dtype


def test_a_family_without_the_words_says_which_and_names_one_that_has(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    with pytest.raises(ConfigError, match=r"BERT has no .* of the kind language model; convert to gpt2"):
        convert(base, tmp_path / "out", "bert")
    with pytest.raises(ConfigError, match="expected one of"):
        convert(base, tmp_path / "out", "gpt5")
    assert not (tmp_path / "out").exists()


def test_a_model_no_family_can_express_is_refused_in_one_sentence(tmp_path: Path) -> None:
    save_run_model(tmp_path / "run", Transformer(EVERY["translator"]()), None, {})
    with pytest.raises(ConfigError, match="no family of transformers has words"):
        convert(tmp_path / "run", tmp_path / "out")


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    before = (base / "model.safetensors").read_bytes()
    for out in (base, base / "config.json"):
        with pytest.raises(CheckpointError, match="choose a new folder"):
            convert(base, out)
    assert (base / "model.safetensors").read_bytes() == before


def test_what_cannot_be_loaded_cannot_be_converted(tmp_path: Path) -> None:
    folder, _ = gpt2_adapter(tmp_path / "adapter")
    with pytest.raises(CheckpointError, match=r"cannot be converted: .*adapter"):
        convert(folder, tmp_path / "out")


def test_a_folder_nobody_may_write_is_said(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written"):
        convert(base, tmp_path / "file" / "out")
