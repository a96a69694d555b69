"""Gemma 2 (Gemma team 2024): Gemma with capped scores and logits, norms around both, every other layer windowed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Count, Positive
from core_model.checkpoint.families.gemma import GemmaLikeKeys
from core_model.checkpoint.families.llama_like import (
    ATTENTION,
    BRANCH_NORMS,
    GATED,
    attention,
    family,
    feed_forward,
    name_table,
    rms_keys,
    stack,
)
from core_model.checkpoint.families.windows import layer_windows, window_keys, windowed
from core_model.config import HeadSpec, LayerSpec, ModelConfig, ResidualSpec, StackConfig


@dataclass(frozen=True, kw_only=True)
class Gemma2Keys(GemmaLikeKeys):
    """The keys of config.json that decide what is computed; hidden_activation is read, hidden_act is not."""

    num_key_value_heads: Count | None = 4
    hidden_act: str | None = None
    hidden_activation: str = "gelu_pytorch_tanh"
    query_pre_attn_scalar: Positive = 256
    sliding_window: Count | None = 4096
    layer_types: list[str] | None = None
    attn_logit_softcapping: Positive | None = 50.0
    final_logit_softcapping: Positive | None = 30.0


def gemma_layer(keys: Gemma2Keys, **changes: object) -> LayerSpec:
    """A layer that sees everything; `changes` are fields of its attention."""
    residual = ResidualSpec(before=keys.norm, after=keys.norm)
    bias = keys.attention_bias
    scale = keys.query_pre_attn_scalar**-0.5
    return LayerSpec(
        attention=attention(keys, qkv_bias=bias, output_bias=bias, scale=scale, **changes),
        attention_residual=residual,
        feed_forward=feed_forward(keys, act="hidden_activation"),
        feed_forward_residual=residual,
    )


def gemma_keys(config: ModelConfig) -> dict[str, Any]:
    """The keys of Gemma 2 and later, by name."""
    layer = config.output_stack.layers[0]
    keys = {**rms_keys(config), **window_keys(config, unused=4096)}
    return {
        **keys,
        "hidden_act": None,
        "hidden_activation": keys["hidden_act"],
        "attention_bias": layer.attention.output_bias,
        "query_pre_attn_scalar": round(layer.attention.scale**-2),  # the library takes whole numbers only
        "attn_logit_softcapping": layer.attention.soft_cap,
        "final_logit_softcapping": config.head.soft_cap if config.head else None,
    }


def _read(keys: Gemma2Keys) -> StackConfig:
    keys.require_causal()
    windows = layer_windows(keys, keys.layer_types, keys.sliding_window, lambda i: i % 2 == 0)
    layers = windowed(gemma_layer(keys, soft_cap=keys.attn_logit_softcapping), windows)
    return stack(keys, layers, keys.norm, scale=keys.hidden_size**0.5)


def read_head(keys: Gemma2Keys, head: HeadSpec) -> HeadSpec:
    """The language model's head, its logits bounded."""
    return replace(head, soft_cap=keys.final_logit_softcapping)


def _write(config: ModelConfig) -> Gemma2Keys:
    return Gemma2Keys(**gemma_keys(config))


NAMES = name_table(*ATTENTION, *GATED, *BRANCH_NORMS)

FAMILY = family(
    key="gemma2",
    label="Gemma 2",
    architectures=architectures("Gemma2", "sequence_classes", "token_classes"),
    keys=Gemma2Keys,
    read=_read,
    write=_write,
    read_head=read_head,
    names=NAMES,
    places={"activation": "hidden_activation"},
    tied_by_default=True,
)
