"""Decoders of the Llama kind against the transformers library: every head's attention and the output, both ways."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.export import save_as_family
from core_model.errors import CoreError
from tests.core_model.checkpoint.references import OUTPUT_LIMIT, assert_agrees, logits_of, reference, saved, seeded

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

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "mistral": ("mistral", {**WIDE, "sliding_window": 4}),
    "mistral without a window": ("mistral", {**WIDE, "sliding_window": None, "rope_parameters": YARN}),
    "mixtral": ("mixtral", {**WIDE, **LOCAL_EXPERTS, "sliding_window": 5}),
    "mixtral of one active expert": ("mixtral", {**WIDE, **LOCAL_EXPERTS, "num_experts_per_tok": 1}),
    "qwen2": ("qwen2", SIZES),
    "qwen2 windowed": ("qwen2", {**SIZES, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
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
    folder = saved(model, tmp_path / "theirs")
    assert_agrees(folder, output, "decoder")
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.family == model_type
        save_as_family(tmp_path / "ours", checkpoint.load_model(), model_type)
        config = checkpoint.config
    written, report = AutoModelForCausalLM.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    want = logits_of(output)
    np.testing.assert_allclose(
        logits_of(reference(written)), want, atol=OUTPUT_LIMIT * max(1.0, float(want.std())), rtol=0
    )
    with open_checkpoint(tmp_path / "ours") as checkpoint:
        assert checkpoint.config == config
