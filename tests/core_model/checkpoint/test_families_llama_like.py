"""Decoders of the Llama kind against the transformers library: every head's attention and the output, both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.export import save_as_family
from core_model.errors import CoreError
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

SIZES: dict[str, Any] = {
    "vocab_size": 23,
    "hidden_size": 36,
    "intermediate_size": 37,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
"""Three layers, three query heads a key head. Heads are 6 wide, or 8 where a family lets them be."""
WIDE = {**SIZES, "head_dim": 8}
WIDER = {**SIZES, "hidden_size": 48}
EXPERTS = {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 12}
LOCAL_EXPERTS = {"num_local_experts": 5, "num_experts_per_tok": 3, "intermediate_size": 20}
"""Widths of experts are multiples of 4, as the library's grouped product needs them."""
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0, 1.5, 2.0],
    "long_factor": [2.0, 3.0, 5.0],
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "rope_theta": 500.0}
ALTERNATING = ["full_attention", "sliding_attention", "full_attention"]
UNWINDOWED = ["full_attention"] * 3
WINDOWED_FIRST = ["sliding_attention", "full_attention", "sliding_attention"]

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "mistral": ("mistral", {**WIDE, "sliding_window": 4}),
    "mistral without a window": ("mistral", {**WIDE, "sliding_window": None, "rope_parameters": YARN}),
    "mistral with DeepSeek's factor of scores": (
        "mistral",
        {**WIDE, "rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.0, "truncate": False}},
    ),
    "mixtral": ("mixtral", {**WIDE, **LOCAL_EXPERTS, "sliding_window": 5}),
    "mixtral of one active expert": ("mixtral", {**WIDE, **LOCAL_EXPERTS, "num_experts_per_tok": 1}),
    "qwen2": ("qwen2", SIZES),
    "qwen2 windowed": ("qwen2", {**SIZES, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
    "qwen2 told to turn half of a head, which its code does not": (
        "qwen2",
        {**WIDER, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}},
    ),
    "qwen2_moe": ("qwen2_moe", {**SIZES, **EXPERTS, "shared_expert_intermediate_size": 13}),
    "qwen2_moe with dense layers": (
        "qwen2_moe",
        {
            **SIZES,
            **EXPERTS,
            "shared_expert_intermediate_size": 13,
            "norm_topk_prob": True,
            "mlp_only_layers": [1],
            "qkv_bias": False,
            "use_sliding_window": True,
            "sliding_window": 4,
        },
    ),
    "qwen3": ("qwen3", WIDE),
    "qwen3 with biases": (
        "qwen3",
        {**WIDE, "attention_bias": True, "layer_types": ALTERNATING, "sliding_window": 3, "use_sliding_window": True},
    ),
    "qwen3_moe": ("qwen3_moe", {**WIDE, **EXPERTS, "norm_topk_prob": True}),
    "qwen3_moe with dense layers": ("qwen3_moe", {**WIDE, **EXPERTS, "decoder_sparse_step": 2, "attention_bias": True}),
    "gemma": ("gemma", WIDE),
    "gemma untied": ("gemma", {**WIDE, "tie_word_embeddings": False, "attention_bias": True, "hidden_act": "relu"}),
    "gemma2": ("gemma2", {**WIDE, "sliding_window": 4, "query_pre_attn_scalar": 20, "attn_logit_softcapping": 2.0}),
    "gemma2 without caps": (
        "gemma2",
        {
            **WIDE,
            "sliding_window": 4,
            "layer_types": ALTERNATING,
            "attn_logit_softcapping": None,
            "final_logit_softcapping": None,
            "hidden_activation": "silu",
        },
    ),
    "gemma3": ("gemma3_text", {**WIDE, "sliding_window": 4, "query_pre_attn_scalar": 20, "layer_types": ALTERNATING}),
    "gemma2 without windows": ("gemma2", {**WIDE, "layer_types": UNWINDOWED}),
    "gemma3 without windows": ("gemma3_text", {**WIDE, "layer_types": UNWINDOWED}),
    "gemma3 in both directions": (
        "gemma3_text",
        {
            **WIDE,
            "sliding_window": 5,
            "layer_types": ALTERNATING,
            "use_bidirectional_attention": True,
            "final_logit_softcapping": 3.0,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
            },
        },
    ),
    "phi": (
        "phi",
        {**SIZES, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.7}},
    ),
    "phi with norms of queries": ("phi", {**WIDER, "qk_layernorm": True, "num_key_value_heads": 6}),
    "phi3": ("phi3", {**SIZES, "sliding_window": 4}),
    "phi3 beyond its length": ("phi3", {**SIZES, "rope_parameters": LONGROPE, "original_max_position_embeddings": 8}),
    "phi3 within its length": ("phi3", {**SIZES, "rope_parameters": LONGROPE, "original_max_position_embeddings": 16}),
    "phi3 partly turned": (
        "phi3",
        {
            **WIDER,
            "rope_parameters": {**LONGROPE, "partial_rotary_factor": 0.75},
            "original_max_position_embeddings": 8,
            "tie_word_embeddings": True,
        },
    ),
    "olmo": ("olmo", WIDE),
    "olmo clipped": ("olmo", {**WIDE, "clip_qkv": 0.7, "attention_bias": True}),
    "olmo2": ("olmo2", WIDE),
    "olmo2 with biases": ("olmo2", {**WIDE, "attention_bias": True, "rms_norm_eps": 0.1}),
    "smollm3": ("smollm3", {**WIDE, "no_rope_layer_interval": 2}),
    "smollm3 windowed": (
        "smollm3",
        {
            **WIDE,
            "no_rope_layers": [0, 1, 0],
            "use_sliding_window": True,
            "sliding_window": 3,
            "attention_bias": True,
            "mlp_bias": True,
        },
    ),
    "stablelm": ("stablelm", {**WIDER, "use_qkv_bias": True}),
    "stablelm parallel": (
        "stablelm",
        {
            **WIDER,
            "use_parallel_residual": True,
            "qk_layernorm": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5},
        },
    ),
    "starcoder2": ("starcoder2", {**WIDE, "sliding_window": 4}),
    "starcoder2 without biases": ("starcoder2", {**WIDE, "use_bias": False, "tie_word_embeddings": False}),
    "cohere": ("cohere", {**WIDE, "logit_scale": 0.3}),
    "cohere with norms of queries": ("cohere", {**WIDE, "use_qk_norm": True, "attention_bias": True}),
    "granite": (
        "granite",
        {
            **WIDE,
            "embedding_multiplier": 3.0,
            "attention_multiplier": 0.2,
            "residual_multiplier": 0.3,
            "logits_scaling": 49.0,
        },
    ),
    "granite with biases": ("granite", {**WIDE, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    "gpt_oss": ("gpt_oss", {**WIDE, **LOCAL_EXPERTS, "sliding_window": 4, "swiglu_limit": 0.6}),
    "gpt_oss without windows": ("gpt_oss", {**WIDE, **LOCAL_EXPERTS, "layer_types": UNWINDOWED}),
    "gpt_oss without biases": (
        "gpt_oss",
        {**WIDE, **LOCAL_EXPERTS, "attention_bias": False, "layer_types": ALTERNATING, "rope_parameters": YARN},
    ),
}


def made(model_type: str, settings: dict[str, Any]) -> PreTrainedModel:
    """A language model of these settings whose attention is far from flat."""
    config = AutoConfig.for_model(model_type, **settings)
    return seeded(AutoModelForCausalLM.from_config(config))


@pytest.mark.parametrize("case", CASES)
def test_attention_and_logits_agree_with_the_reference_both_ways(case: str, tmp_path: Path) -> None:
    model_type, settings = CASES[case]
    model = made(model_type, settings)
    output = reference(model)
    assert_agrees(saved(model, tmp_path / "theirs"), output, "decoder")
    again = written_back(model, tmp_path / "theirs", tmp_path / "ours")
    assert_close(logits_of(reference(again)), logits_of(output))


def without(*keys: str, **others: Any) -> dict[str, Any]:
    """Changes to a config.json: keys to take out, and others to put in."""
    return {**dict.fromkeys(keys, ...), **others}


OLDER: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a window without layer_types": (
        "qwen2",
        {**SIZES, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 2},
        without("layer_types"),
    ),
    "windows of every other layer without layer_types": (
        "qwen2_moe",
        {**SIZES, **EXPERTS, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 2},
        without("layer_types"),
    ),
    "alternating windows without layer_types": ("gemma2", {**WIDE, "sliding_window": 4}, without("layer_types")),
    "two rotary bases in keys of their own": (
        "gemma3_text",
        {
            **WIDE,
            "sliding_window": 4,
            "layer_types": WINDOWED_FIRST,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
            },
        },
        without(
            "layer_types",
            "rope_parameters",
            rope_theta=5000.0,
            rope_local_base_freq=50.0,
            rope_scaling={"rope_type": "linear", "factor": 4.0},
            sliding_window_pattern=2,
        ),
    ),
    "two rotary bases that go without saying": (
        "gemma3_text",
        {**WIDE, "sliding_window": 4, "layer_types": WINDOWED_FIRST},
        without("layer_types", "rope_parameters", sliding_window_pattern=2),
    ),
    "layers without positions by their interval": (
        "smollm3",
        {**WIDE, "no_rope_layer_interval": 2, "use_sliding_window": True, "sliding_window": 3},
        without("no_rope_layers", "layer_types"),
    ),
    "the first name of longrope": (
        "phi3",
        {**SIZES, "rope_parameters": LONGROPE, "original_max_position_embeddings": 8},
        without(
            "rope_parameters",
            rope_theta=10000.0,
            rope_scaling={"type": "su", **{key: LONGROPE[key] for key in ("short_factor", "long_factor")}},
        ),
    ),
    "a share of the head in a key of its own": (
        "stablelm",
        {**WIDER, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.75}},
        without("rope_parameters", rope_theta=500.0, partial_rotary_factor=0.75, rope_scaling=None),
    ),
    "half of the head": ("phi", WIDER, without("rope_parameters")),
    "a quarter of the head": ("stablelm", WIDER, without("rope_parameters")),
    "the rotary base of Mixtral": ("mixtral", {**WIDE, **LOCAL_EXPERTS}, without("rope_parameters")),
    "the rotary base of Cohere": ("cohere", WIDE, without("rope_parameters")),
    "the positions of gpt-oss": (
        "gpt_oss",
        {**WIDE, **LOCAL_EXPERTS},
        without("rope_parameters", "layer_types", "swiglu_alpha", "swiglu_limit"),
    ),
    "an activation Gemma's config says and does not mean": ("gemma", WIDE, without(hidden_act="gelu")),
    "experts under another key": (
        "mixtral",
        {**WIDE, **LOCAL_EXPERTS},
        without("num_local_experts", num_experts=LOCAL_EXPERTS["num_local_experts"]),
    ),
    "experts under the key of Qwen": (
        "qwen3_moe",
        {**WIDE, **EXPERTS},
        without("num_local_experts", num_experts=EXPERTS["num_experts"]),
    ),
}


@pytest.mark.parametrize("case", OLDER)
def test_the_older_config_dialect_means_the_same(case: str, tmp_path: Path) -> None:
    model_type, settings, change = OLDER[case]
    model = made(model_type, settings)
    assert_agrees(edit_config(saved(model, tmp_path), **change), reference(model), "decoder")


@pytest.mark.parametrize("model_type", ["mixtral", "qwen2_moe", "qwen3_moe"])
def test_experts_stored_all_in_one_tensor_agree_with_the_reference(model_type: str, tmp_path: Path) -> None:
    model = made(model_type, {**WIDE, **(LOCAL_EXPERTS if model_type == "mixtral" else EXPERTS)})
    model.save_pretrained(tmp_path, save_original_format=False)
    with open_checkpoint(tmp_path) as checkpoint:
        assert "model.layers.0.mlp.experts.gate_up_proj" in checkpoint.tensors
    assert_agrees(tmp_path, reference(model), "decoder")


@pytest.mark.parametrize(
    ("model_type", "class_name"),
    [
        ("llama", "LlamaForTokenClassification"),
        ("llama", "LlamaForQuestionAnswering"),
        ("mistral", "MistralForQuestionAnswering"),
        ("qwen2", "Qwen2ForSequenceClassification"),
        ("qwen3", "Qwen3Model"),
        ("gemma2", "Gemma2ForSequenceClassification"),
        ("gemma3_text", "Gemma3TextForSequenceClassification"),
        ("phi", "PhiForTokenClassification"),
        ("phi", "PhiModel"),
        ("olmo", "OlmoForSequenceClassification"),
        ("smollm3", "SmolLM3ForQuestionAnswering"),
        ("cohere", "CohereModel"),
        ("granite", "GraniteModel"),
    ],
)
def test_other_heads_agree_with_the_reference_both_ways(model_type: str, class_name: str, tmp_path: Path) -> None:
    model_class = getattr(transformers, class_name)
    config = AutoConfig.for_model(model_type, **WIDER, num_labels=3)
    model = seeded(model_class(config))
    output = reference(model)
    assert_agrees(saved(model, tmp_path / "theirs"), output, "decoder")
    again = written_back(model, tmp_path / "theirs", tmp_path / "ours")
    assert_close(logits_of(reference(again)), logits_of(output))


@pytest.mark.parametrize(
    ("case", "key", "value"),
    [
        ("mistral", "num_key_value_heads", 4),
        ("mistral", "sliding_window", -1),
        ("mistral", "hidden_act", "swish2"),
        ("mixtral", "num_experts_per_tok", 6),
        ("mixtral", "num_local_experts", 10**9),
        ("qwen2", "layer_types", ["full_attention"]),
        ("qwen2", "layer_types", ["full_attention", "chunked_attention", "full_attention"]),
        ("qwen2", "layer_types", ALTERNATING),
        ("qwen2", "num_attention_heads", 7),
        ("qwen3", "rms_norm_eps", 0),
        ("qwen2_moe", "num_experts", 10**9),
        ("gemma", "use_bidirectional_attention", True),
        ("gemma2", "query_pre_attn_scalar", 0),
        ("phi", "partial_rotary_factor", 0.5),
        ("phi", "partial_rotary_factor", 1e308),
        ("phi3 beyond its length", "short_factor", [1.0]),
        ("olmo", "clip_qkv", -1.0),
        ("smollm3", "no_rope_layers", [1]),
        ("stablelm parallel", "num_attention_heads", 10**8),
        ("cohere", "logit_scale", "large"),
        ("granite", "logits_scaling", 0.0),
        ("gpt_oss", "swiglu_alpha", 1.5),
    ],
)
def test_what_a_family_cannot_say_is_refused_by_the_key(case: str, key: str, value: Any, tmp_path: Path) -> None:
    model_type, settings = CASES[case]
    folder = saved(made(model_type, settings), tmp_path)
    rope = json.loads((folder / "config.json").read_text())["rope_parameters"]
    change: dict[str, Any] = {"rope_parameters": {**rope, key: value}} if key in rope else {key: value}
    if key == "num_attention_heads":
        change["hidden_size"] = 12 * value if case != "qwen2" else 36
    edit_config(folder, **change)
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.refusal is not None and key in checkpoint.info.refusal, checkpoint.info.refusal
        assert len(checkpoint.tensors) > 0
        with pytest.raises(CoreError, match=key):
            checkpoint.load_model()


def test_quantised_experts_are_named_as_such(tmp_path: Path) -> None:
    folder = saved(made(*CASES["gpt_oss"]), tmp_path)
    tensors = load_file(folder / "model.safetensors")
    name = "model.layers.0.mlp.experts.down_proj"
    del tensors[name]
    blocks = {f"{name}_blocks": torch.zeros(5, 36, 2, 8, dtype=torch.uint8), f"{name}_scales": torch.zeros(5, 36, 2)}
    save_file({**tensors, **blocks}, folder / "model.safetensors")
    edit_config(folder, quantization_config={"quant_method": "mxfp4"})
    with open_checkpoint(folder) as checkpoint:
        assert f"{name}_blocks" in checkpoint.tensors
        with pytest.raises(CoreError, match=r"quantised by mxfp4 .*down_proj_"):
            checkpoint.load_model()


def test_a_model_whose_first_layer_has_no_positions_is_still_said_to_be_rotary(tmp_path: Path) -> None:
    with open_checkpoint(saved(made(*CASES["smollm3 windowed"]), tmp_path)) as checkpoint:
        assert checkpoint.config is not None and checkpoint.config.output_stack.layers[0].attention.position is None
        assert {fact.name: fact.value for fact in checkpoint.info.facts}["positions"] == "rotary"


def test_a_model_without_experts_is_not_written_as_a_mixture_of_them(tmp_path: Path) -> None:
    with open_checkpoint(saved(made("qwen2", SIZES), tmp_path / "theirs")) as checkpoint:
        model = checkpoint.load_model()
    with pytest.raises(CoreError, match="experts"):
        save_as_family(tmp_path / "ours", model, "qwen2_moe")
