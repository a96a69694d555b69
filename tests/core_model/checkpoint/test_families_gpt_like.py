"""Decoders of the GPT kind against the transformers library: every head's attention and the output, both ways."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.families.rotary import rotary_share
from core_model.errors import ConfigError
from tests.core_model.checkpoint.references import (
    assert_agrees,
    assert_close,
    edit_config,
    logits_of,
    reference,
    saved,
    seeded,
    written_back,
)

COMMON = {"vocab_size": 23, "bos_token_id": 0, "eos_token_id": 1, "num_labels": 3, "attn_implementation": "eager"}
THREE_LAYERS = {"n_positions": 17, "n_embd": 30, "n_layer": 3, "n_head": 5}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "rope_theta": 500.0}
SIZES: dict[str, dict[str, Any]] = {
    "OpenAIGPT": THREE_LAYERS,
    "GPTNeo": {
        "max_position_embeddings": 17,
        "hidden_size": 30,
        "num_layers": 3,
        "num_heads": 5,
        "intermediate_size": 37,
        "window_size": 4,
        "attention_types": [[["global", "local"], 1], [["local"], 1]],
    },
    "GPTJ": {**THREE_LAYERS, "rotary_dim": 4, "n_inner": 37},
    "GPTNeoX": {
        "hidden_size": 60,
        "num_hidden_layers": 3,
        "num_attention_heads": 5,
        "intermediate_size": 37,
        "max_position_embeddings": 17,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5},
    },
    "CodeGen": {"n_positions": 17, "n_embd": 60, "n_layer": 3, "n_head": 5, "rotary_dim": 6, "n_inner": 37},
    "OPT": {
        "hidden_size": 30,
        "num_hidden_layers": 3,
        "num_attention_heads": 5,
        "ffn_dim": 37,
        "max_position_embeddings": 17,
        "pad_token_id": 2,
    },
    "Bloom": {"hidden_size": 30, "n_layer": 3, "n_head": 6},
    "Falcon": {"hidden_size": 36, "num_hidden_layers": 3, "num_attention_heads": 6, "ffn_hidden_size": 37},
    "Mpt": {"d_model": 30, "n_layers": 3, "n_heads": 6, "max_seq_len": 17},
    "GPTBigCode": {**THREE_LAYERS, "n_inner": 37},
    "XGLM": {"d_model": 45, "num_layers": 3, "attention_heads": 5, "ffn_dim": 37, "max_position_embeddings": 17},
}
"""Unusual sizes: odd numbers of layers and heads, feed-forwards of no round factor, widths that are no power of 2."""

NARROW = {"word_embed_proj_dim": 14}
SEQUENTIAL = {"parallel_attn": False, "multi_query": False, "bias": True}
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("OpenAIGPT", "LMHeadModel", {}),
    ("OpenAIGPT", "LMHeadModel", {"afn": "silu", "tie_word_embeddings": False}),
    ("OpenAIGPT", "Model", {"layer_norm_epsilon": 0.1}),
    ("OpenAIGPT", "ForSequenceClassification", {}),
    ("GPTNeo", "ForCausalLM", {}),
    ("GPTNeo", "ForCausalLM", {"activation_function": "relu", "tie_word_embeddings": False}),
    ("GPTNeo", "Model", {"intermediate_size": None}),
    ("GPTNeo", "ForTokenClassification", {}),
    ("GPTJ", "ForCausalLM", {}),
    ("GPTJ", "ForCausalLM", {"rotary_dim": 6, "n_inner": None, "tie_word_embeddings": True}),
    ("GPTJ", "ForSequenceClassification", {}),
    ("GPTNeoX", "ForCausalLM", {}),
    ("GPTNeoX", "ForCausalLM", {"use_parallel_residual": False, "attention_bias": False, "hidden_act": "gelu_new"}),
    ("GPTNeoX", "ForCausalLM", {"rope_parameters": {**LINEAR, "partial_rotary_factor": 1.0}}),
    ("GPTNeoX", "ForCausalLM", {"rope_parameters": {**YARN, "partial_rotary_factor": 0.7}}),
    ("GPTNeoX", "Model", {"layer_norm_eps": 0.1}),
    ("GPTNeoX", "ForQuestionAnswering", {}),
    ("CodeGen", "ForCausalLM", {}),
    ("CodeGen", "ForCausalLM", {"n_head": 4, "tie_word_embeddings": True}),
    ("CodeGen", "Model", {}),
    ("OPT", "ForCausalLM", {}),
    ("OPT", "ForCausalLM", {**NARROW, "do_layer_norm_before": False}),
    ("OPT", "ForCausalLM", {**NARROW, "tie_word_embeddings": False, "activation_function": "gelu"}),
    ("OPT", "ForCausalLM", {"enable_bias": False, "layer_norm_elementwise_affine": False}),
    ("OPT", "Model", {"_remove_final_layer_norm": True}),
    ("OPT", "ForSequenceClassification", NARROW),
    ("Bloom", "ForCausalLM", {}),
    ("Bloom", "Model", {"n_head": 5, "layer_norm_epsilon": 0.1}),
    ("Bloom", "ForTokenClassification", {}),
    ("Falcon", "ForCausalLM", {}),
    ("Falcon", "ForCausalLM", {**SEQUENTIAL, "alibi": True}),
    ("Falcon", "ForCausalLM", {"multi_query": False, "alibi": True, "activation": "relu"}),
    ("Falcon", "ForCausalLM", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    ("Falcon", "ForCausalLM", {"new_decoder_architecture": True, "num_kv_heads": 3, "num_ln_in_parallel_attn": 1}),
    ("Falcon", "Model", {**SEQUENTIAL, "rope_parameters": LINEAR}),
    ("Falcon", "ForQuestionAnswering", {"ffn_hidden_size": None, "rope_parameters": YARN}),
    ("Mpt", "ForCausalLM", {}),
    ("Mpt", "ForCausalLM", {"attn_config": {"clip_qkv": 1.5, "softmax_scale": 0.7}}),
    ("Mpt", "ForSequenceClassification", {}),
    ("GPTBigCode", "ForCausalLM", {}),
    ("GPTBigCode", "ForCausalLM", {"multi_query": False, "scale_attn_weights": False}),
    ("GPTBigCode", "ForTokenClassification", {}),
    ("XGLM", "ForCausalLM", {}),
    ("XGLM", "ForCausalLM", {"scale_embedding": False, "d_model": 30, "tie_word_embeddings": False}),
    ("XGLM", "Model", {"activation_function": "relu"}),
]


def tiny(family: str, kind: str = "ForCausalLM", **changes: Any) -> PreTrainedModel:
    """A small model of one of the library's classes with weights that make its attention anything but flat."""
    config = getattr(transformers, f"{family}Config")(**{**COMMON, **SIZES[family], **changes})
    return seeded(getattr(transformers, f"{family}{kind}")(config))


def named(case: tuple[str, str, dict[str, Any]]) -> str:
    return "-".join((case[0], case[1], *case[2]))


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_head_and_the_output_agree_with_the_reference_both_ways(
    case: tuple[str, str, dict[str, Any]], tmp_path: Path
) -> None:
    family, kind, changes = case
    model = tiny(family, kind, **changes)
    want = reference(model)
    assert_agrees(saved(model, tmp_path / "theirs"), want, "decoder")
    again = written_back(model, tmp_path / "theirs", tmp_path / "ours")
    assert_close(logits_of(reference(again)), logits_of(want))


def test_the_steepest_alibi_slope_of_mpt_is_what_its_config_says(tmp_path: Path) -> None:
    """The library passes over alibi_bias_max; its own function for the slopes takes it."""
    model: Any = tiny("Mpt", attn_config={"alibi_bias_max": 4})
    folder = saved(model, tmp_path)
    model.transformer.build_mpt_alibi_tensor = partial(model.transformer.build_mpt_alibi_tensor, alibi_bias_max=4)
    assert_agrees(folder, reference(model), "decoder")
    with open_checkpoint(folder) as checkpoint:
        assert any(told.startswith("alibi_bias_max is 4 ") for told in checkpoint.info.warnings)


def test_biases_of_bloom_that_the_library_leaves_out_are_added_and_told(tmp_path: Path) -> None:
    """With slow_but_exact and pretraining_tp it sums slices of the output maps without their biases."""
    folder = saved(tiny("Bloom"), tmp_path)
    edit_config(folder, slow_but_exact=True, pretraining_tp=2)
    leaves_out: Any = transformers.BloomForCausalLM.from_pretrained(folder)
    assert leaves_out.transformer.h[0].mlp.slow_but_exact
    assert_agrees(folder, reference(tiny("Bloom")), "decoder")
    with open_checkpoint(folder) as checkpoint:
        assert any(told.startswith("slow_but_exact is true") for told in checkpoint.info.warnings)


def test_hidden_states_of_opt_end_as_wide_as_its_narrow_token_table(tmp_path: Path) -> None:
    model = tiny("OPT", "Model", **NARROW)
    want = reference(model)
    assert want.last_hidden_state.shape[-1] == NARROW["word_embed_proj_dim"] < model.config.hidden_size
    assert_agrees(saved(model, tmp_path / "theirs"), want, "decoder")
    again = written_back(model, tmp_path / "theirs", tmp_path / "ours")
    assert_close(logits_of(reference(again)), logits_of(want))


def test_pythia_as_older_versions_saved_it_is_read(tmp_path: Path) -> None:
    model = tiny("GPTNeoX")
    folder = saved(model, tmp_path)
    edit_config(folder, rope_parameters=..., rotary_pct=0.5, rotary_emb_base=500, rope_scaling=None)
    path = folder / "model.safetensors"
    tensors = {name.replace("lm_head.", "embed_out."): tensor for name, tensor in load_file(path).items()}
    buffers = {"bias": torch.ones(1, 1, 17, 17).tril(), "masked_bias": torch.tensor(-1e9)}
    buffers["rotary_emb.inv_freq"] = torch.ones(3)
    masks = {f"gpt_neox.layers.{i}.attention.{name}": t.clone() for i in range(3) for name, t in buffers.items()}
    save_file({**tensors, **masks}, path, metadata={"format": "pt"})
    assert_agrees(folder, reference(model), "decoder")


def test_bloom_as_it_was_published_is_read(tmp_path: Path) -> None:
    """Its config says n_embed and num_attention_heads, its tensors have no prefix."""
    model = tiny("Bloom")
    folder = saved(model, tmp_path)
    edit_config(folder, hidden_size=..., n_head=..., n_embed=30, num_attention_heads=6)
    path = folder / "model.safetensors"
    tensors = {name.removeprefix("transformer."): tensor for name, tensor in load_file(path).items()}
    save_file(tensors, path, metadata={"format": "pt"})
    assert_agrees(folder, reference(model), "decoder")


def test_a_written_share_of_rotated_dimensions_means_the_same_number_again() -> None:
    """The library takes the whole part of head size times share: 47 * (6 / 47) is less than 6."""
    for head_size in range(2, 200):
        for n_rotated in range(2, head_size + 1, 2):
            assert int(head_size * rotary_share(n_rotated, head_size)) == n_rotated


@pytest.mark.parametrize(
    ("family", "changes", "named"),
    [
        ("OpenAIGPT", {"afn": "tanh"}, "afn is 'tanh'"),
        ("OpenAIGPT", {"n_head": 4}, "n_head is 4 and n_embd is 30"),
        ("GPTNeo", {"attention_types": [[["global"], 2]]}, "attention_types gives 2 layers and num_layers is 3"),
        ("GPTNeo", {"attention_types": [[["sparse"], 3]]}, "attention_types has 'sparse'"),
        ("GPTNeo", {"attention_types": [[["local"], 10**12]]}, "attention_types gives 1000000000000 layers"),
        ("GPTJ", {"rotary_dim": 5}, "rotary_dim is 5"),
        ("GPTJ", {"rotary_dim": 8}, "rotary_dim is 8 .* at most 6"),
        ("GPTNeoX", {"rope_parameters": {"partial_rotary_factor": 0.25}}, "partial_rotary_factor is 0.25"),
        ("CodeGen", {"n_embd": 30}, "n_embd is 30"),
        ("Bloom", {"apply_residual_connection_post_layernorm": True}, "apply_residual_connection_post_layernorm"),
        ("Falcon", {"new_decoder_architecture": True, "parallel_attn": False}, "parallel_attn is false"),
        ("Falcon", {"new_decoder_architecture": True, "num_kv_heads": 4}, "num_kv_heads is 4"),
        ("Mpt", {"attn_config": {"alibi": False}}, r"attn_config\.alibi is False"),
        ("Mpt", {"attn_config": {"qk_ln": True}}, r"attn_config\.qk_ln is True"),
        ("Mpt", {"no_bias": False}, "no_bias is False"),
        ("Mpt", {"logit_scale": "inv_sqrt_d_model"}, "logit_scale is 'inv_sqrt_d_model'"),
        ("GPTBigCode", {"add_cross_attention": True}, "add_cross_attention is true"),
        ("XGLM", {"pad_token_id": 2}, "pad_token_id is 2"),
    ],
    ids=str,
)
def test_what_a_family_cannot_mean_is_refused_by_the_name_of_its_key(
    family: str, changes: dict[str, Any], named: str, tmp_path: Path
) -> None:
    model = tiny(family, "LMHeadModel" if family == "OpenAIGPT" else "ForCausalLM")
    with open_checkpoint(edit_config(saved(model, tmp_path), **changes)) as checkpoint:
        assert checkpoint.tensors
        with pytest.raises(ConfigError, match=named):
            checkpoint.load_model()
