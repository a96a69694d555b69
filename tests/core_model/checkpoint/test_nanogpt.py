"""nanoGPT state dicts, held against a GPT-2 of the transformers library with the same weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.export import express
from core_model.checkpoint.families import nanogpt
from core_model.checkpoint.pickles import convert_pickle
from core_model.errors import ConfigError
from tests.core_model.checkpoint.references import assert_agrees, reference, seeded

MODEL_ARGS = {"n_layer": 3, "n_head": 5, "n_embd": 30, "block_size": 17, "vocab_size": 23, "dropout": 0.0}


def gpt2(activation: str = "gelu", *, bias: bool = True) -> PreTrainedModel:
    """3 layers of 5 heads; without biases they are 0."""
    sizes: dict[str, Any] = {"n_layer": 3, "n_head": 5, "n_embd": 30, "n_positions": 17, "vocab_size": 23}
    model = seeded(GPT2LMHeadModel(GPT2Config(**sizes, activation_function=activation, bos_token_id=0, eos_token_id=1)))
    if not bias:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.mul_(not name.endswith("bias"))
    return model


def write(folder: Path, model: PreTrainedModel, *, wrapper: str = "_orig_mod.", bias: bool = True) -> Path:
    """The model as nanoGPT's train.py has it: [out, in] matrices, the head stored beside the table it is tied to."""
    matrices = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    tensors = {
        f"{wrapper}{name}": (tensor.T if name.endswith(matrices) else tensor).clone().contiguous()
        for name, tensor in model.state_dict().items()
        if bias or not name.endswith("bias")
    }
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    return folder


def write_args(folder: Path, **more: object) -> Path:
    """nanoGPT's model_args as a config.json beside the weights: it says the number of heads, and no model_type."""
    (folder / "config.json").write_text(json.dumps({**MODEL_ARGS, **more}))
    return folder


@pytest.mark.parametrize("wrapper", ["", "module.", "_orig_mod.", "module._orig_mod."])
def test_the_number_of_heads_is_asked_and_the_rest_read_off_the_tensors(wrapper: str, tmp_path: Path) -> None:
    folder = write(tmp_path, gpt2(), wrapper=wrapper)
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.family is None
        with pytest.raises(ConfigError, match=r"nanoGPT.*n_heads"):
            checkpoint.load_model()
    with open_checkpoint(folder, assume={"n_heads": 5}) as checkpoint:
        assert checkpoint.info.family == "nanogpt"
        assert checkpoint.info.tied == (f"{wrapper}lm_head.weight = {wrapper}transformer.wte.weight",)
        assert {fact.origin for fact in checkpoint.info.facts} == {"inferred"}
        checkpoint.load_model()


def write_header(folder: Path, text: str) -> Path:
    """A text under model_args in the header of the weights."""
    path = folder / "model.safetensors"
    save_file(load_file(path), path, metadata={"format": "pt", "model_args": text})
    return folder


def test_a_gpt2_vocabulary_beside_weights_without_a_config_is_read_as_one(tmp_path: Path) -> None:
    folder = write(tmp_path, gpt2())
    (folder / "vocab.json").write_text(json.dumps({**{c: i for i, c in enumerate("abcdefghij")}, "ab": 10}))
    (folder / "merges.txt").write_text("a b\n")
    with open_checkpoint(folder, assume={"n_heads": 5}) as checkpoint:
        assert checkpoint.tokenizer is not None
        assert checkpoint.tokenizer.warnings == ()


@pytest.mark.parametrize("where", ["model_args.json", "config.json", "part of config.json", "header"])
def test_model_args_are_used_as_stated(where: str, tmp_path: Path) -> None:
    model = gpt2()
    folder = write(tmp_path, model)
    if where == "header":
        write_header(folder, json.dumps(MODEL_ARGS))
    else:
        document = {"model_args": MODEL_ARGS, "iter_num": 2000} if where.startswith("part") else MODEL_ARGS
        (folder / where.removeprefix("part of ")).write_text(json.dumps(document))
    with open_checkpoint(folder) as checkpoint:
        facts = {fact.name: (fact.value, fact.origin) for fact in checkpoint.info.facts}
        assert facts["heads"] == ("5", "stated")
        assert not any("config.json" in warning for warning in checkpoint.info.warnings)
    assert_agrees(folder, reference(model), "decoder")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "model_args in the header of model.safetensors is no JSON object"),
        ("[5]", "model_args in the header of model.safetensors is no JSON object"),
        (json.dumps({**MODEL_ARGS, "n_head": 4}), "n_head is 4 and n_embd is 30 in the weights' header"),
        (json.dumps({"n_layer": 3}), "the weights' header has no n_head"),
    ],
)
def test_wrong_model_args_in_the_header_are_named(text: str, told: str, tmp_path: Path) -> None:
    with open_checkpoint(write_header(write(tmp_path, gpt2()), text)) as checkpoint:
        assert checkpoint.tensors
        assert told in (checkpoint.info.refusal or "")


def test_a_checkpoint_of_train_py_opens_once_it_is_converted(tmp_path: Path) -> None:
    """ckpt.pt: the weights beside model_args, the state of the optimiser and the settings of the run."""
    model = gpt2()
    tensors = load_file(write(tmp_path / "plain", model) / "model.safetensors")
    content = {"model": tensors, "model_args": {**MODEL_ARGS, "bias": True}, "iter_num": 7, "config": {"n_head": 3}}
    torch.save(content, tmp_path / "ckpt.pt")
    convert_pickle(tmp_path / "ckpt.pt", tmp_path / "out")
    assert_agrees(tmp_path / "out", reference(model), "decoder")


@pytest.mark.parametrize("bias", [True, False])
def test_every_head_and_the_logits_agree_with_the_reference(bias: bool, tmp_path: Path) -> None:
    model = gpt2(bias=bias)
    assert_agrees(write_args(write(tmp_path, model, bias=bias)), reference(model), "decoder")


def test_the_activation_of_older_versions_can_be_given(tmp_path: Path) -> None:
    model = gpt2("gelu_new")
    folder = write_args(write(tmp_path, model), activation="gelu_new")
    assert_agrees(folder, reference(model), "decoder")


def test_gpt2s_own_matrices_are_still_gpt2(tmp_path: Path) -> None:
    gpt2().save_pretrained(tmp_path)
    (tmp_path / "config.json").unlink()
    with open_checkpoint(tmp_path, assume={"n_heads": 5}) as checkpoint:
        assert checkpoint.info.family == "gpt2"
        checkpoint.load_model()


def test_nothing_is_saved_as_nanogpt(tmp_path: Path) -> None:
    with open_checkpoint(write(tmp_path, gpt2()), assume={"n_heads": 5}) as checkpoint:
        assert checkpoint.config is not None
        with pytest.raises(ConfigError, match="save the model as GPT-2"):
            express(checkpoint.config, nanogpt.FAMILY)
