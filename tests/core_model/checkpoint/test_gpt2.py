"""GPT-2 checkpoints against the transformers library: every head's attention and the logits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    GPT2Config,
    GPT2ForQuestionAnswering,
    GPT2ForSequenceClassification,
    GPT2ForTokenClassification,
    GPT2LMHeadModel,
    GPT2Model,
    PreTrainedModel,
)

from core_model.checkpoint import open_checkpoint
from core_model.errors import CheckpointError
from tests.core_model.checkpoint.references import assert_agrees, reference, saved, seeded


def gpt2_config(**changes: Any) -> GPT2Config:
    """Unusual sizes: 3 layers, 5 heads of 6, no power of two."""
    sizes = {"vocab_size": 23, "n_positions": 17, "n_embd": 30, "n_layer": 3, "n_head": 5}
    return GPT2Config(**{**sizes, "bos_token_id": 0, "eos_token_id": 1, **changes})


def rewrite(folder: Path, rename: dict[str, str] | None = None, **more: torch.Tensor) -> None:
    """Rename tensors of a saved folder by their beginnings, or add some."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for old, new in (rename or {}).items():
        tensors = {new + name[len(old) :] if name.startswith(old) else name: t for name, t in tensors.items()}
    save_file({**tensors, **more}, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    "model_class", [GPT2LMHeadModel, GPT2Model, GPT2ForTokenClassification, GPT2ForQuestionAnswering]
)
def test_every_head_and_the_output_agree_with_the_reference(model_class: type[PreTrainedModel], tmp_path: Path) -> None:
    model = seeded(model_class(gpt2_config(num_labels=3)))
    assert_agrees(saved(model, tmp_path), reference(model), "decoder")


@pytest.mark.parametrize(
    "changes",
    [
        {"scale_attn_by_inverse_layer_idx": True},
        {"scale_attn_weights": False},
        {"n_inner": 37},
        {"activation_function": "gelu"},
        {"activation_function": "relu"},
        {"layer_norm_epsilon": 0.1},
    ],
    ids=str,
)
def test_every_choice_of_the_config_agrees_with_the_reference(changes: dict[str, Any], tmp_path: Path) -> None:
    model = seeded(GPT2LMHeadModel(gpt2_config(**changes)))
    assert_agrees(saved(model, tmp_path), reference(model), "decoder")


def test_sequence_classes_are_read_off_the_last_token(tmp_path: Path) -> None:
    model = seeded(GPT2ForSequenceClassification(gpt2_config(num_labels=3)))
    assert_agrees(saved(model, tmp_path), reference(model), "decoder")


def test_an_output_head_of_its_own_is_used(tmp_path: Path) -> None:
    model = seeded(GPT2LMHeadModel(gpt2_config(tie_word_embeddings=False)))
    assert_agrees(saved(model, tmp_path), reference(model), "decoder")


def test_hub_style_names_and_saved_mask_buffers_are_read(tmp_path: Path) -> None:
    model = seeded(GPT2LMHeadModel(gpt2_config()))
    folder = saved(model, tmp_path)
    masks = {f"h.{i}.attn.bias": torch.ones(1, 1, 17, 17).tril() for i in range(3)}
    masks |= {f"h.{i}.attn.masked_bias": torch.tensor(-1e4) for i in range(3)}
    rewrite(folder, {"transformer.": ""}, **masks)
    assert_agrees(folder, reference(model), "decoder")


@pytest.mark.parametrize("wrapper", ["module.", "_orig_mod.", "base_model.model.", "module._orig_mod."])
def test_names_behind_a_wrapper_are_read(wrapper: str, tmp_path: Path) -> None:
    model = seeded(GPT2LMHeadModel(gpt2_config()))
    folder = saved(model, tmp_path)
    rewrite(folder, {"": wrapper})
    assert_agrees(folder, reference(model), "decoder")


def test_a_table_stored_only_as_the_tied_head_is_found(tmp_path: Path) -> None:
    model = seeded(GPT2LMHeadModel(gpt2_config()))
    folder = saved(model, tmp_path)
    rewrite(folder, {"transformer.wte.weight": "lm_head.weight"})
    assert_agrees(folder, reference(model), "decoder")


def test_an_equal_copy_of_the_tied_head_is_ignored(tmp_path: Path) -> None:
    model = seeded(GPT2LMHeadModel(gpt2_config()))
    folder = saved(model, tmp_path)
    rewrite(folder, **{"lm_head.weight": model.lm_head.weight.detach().clone()})
    assert_agrees(folder, reference(model), "decoder")
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.tied == ("lm_head.weight = transformer.wte.weight",)
        assert not any("ties" in warning for warning in checkpoint.info.warnings)


def test_a_stored_head_that_differs_is_used_and_said_although_the_config_ties(tmp_path: Path) -> None:
    model = seeded(GPT2LMHeadModel(gpt2_config(tie_word_embeddings=False)))
    folder = saved(model, tmp_path)
    document = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**document, "tie_word_embeddings": True}))
    assert_agrees(folder, reference(model), "decoder")
    with open_checkpoint(folder) as checkpoint:
        assert any("ties the output head" in warning for warning in checkpoint.info.warnings)


def test_weights_without_a_config_ask_for_the_number_of_heads(tmp_path: Path) -> None:
    model = seeded(GPT2LMHeadModel(gpt2_config()))
    folder = saved(model, tmp_path)
    (folder / "config.json").unlink()
    with open_checkpoint(folder) as checkpoint:
        assert "n_heads" in (checkpoint.info.refusal or "")
    with open_checkpoint(folder, assume={"n_heads": 5}) as checkpoint:
        assert checkpoint.config is not None
        assert checkpoint.config.attention_layers()["decoder.self"][2].head_size == 6
        assert {fact.origin for fact in checkpoint.info.facts} == {"inferred"}
        assert checkpoint.load_model().eval() is not None


def test_square_matrices_are_transposed_too(tmp_path: Path) -> None:
    """c_proj is [C, C]: only its values tell that it is stored [in, out] (nanoGPT#190)."""
    model = seeded(GPT2LMHeadModel(gpt2_config()))
    with open_checkpoint(saved(model, tmp_path)) as checkpoint:
        ours = checkpoint.load_model().state_dict()
    theirs = model.state_dict()
    stored = theirs["transformer.h.1.attn.c_proj.weight"]
    assert torch.equal(ours["decoder.layers.1.attention.output.weight"], stored.T)
    fused = theirs["transformer.h.1.attn.c_attn.weight"]
    assert torch.equal(ours["decoder.layers.1.attention.key.weight"], fused[:, 30:60].T)


def test_a_gpt2_that_reads_an_encoder_is_refused_by_name(tmp_path: Path) -> None:
    model = GPT2LMHeadModel(gpt2_config(add_cross_attention=True))
    with open_checkpoint(saved(model, tmp_path)) as checkpoint:
        assert checkpoint.tensors
        with pytest.raises(Exception, match="add_cross_attention") as caught:
            checkpoint.load_model()
    assert not isinstance(caught.value, CheckpointError | AssertionError)
