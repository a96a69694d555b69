"""Granite 3 (IBM 2024): Llama with multipliers of embeddings, scores, residual branches and logits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Positive
from core_model.checkpoint.families.llama_like import RmsKeys, attention, family, feed_forward, rms_keys, stack
from core_model.config import HeadSpec, LayerSpec, ModelConfig, ResidualSpec, StackConfig


@dataclass(frozen=True, kw_only=True)
class GraniteKeys(RmsKeys):
    """The keys of config.json that decide what is computed."""

    attention_bias: bool = False
    mlp_bias: bool = False
    embedding_multiplier: Positive = 1.0
    attention_multiplier: Positive = 1.0
    residual_multiplier: Positive = 1.0
    logits_scaling: Positive = 1.0


def _read(keys: GraniteKeys) -> StackConfig:
    bias, residual = keys.attention_bias, ResidualSpec(before=keys.norm, scale=keys.residual_multiplier)
    layer = LayerSpec(
        attention=attention(keys, qkv_bias=bias, output_bias=bias, scale=keys.attention_multiplier),
        attention_residual=residual,
        feed_forward=feed_forward(keys, bias=keys.mlp_bias),
        feed_forward_residual=residual,
    )
    return stack(keys, [layer] * keys.num_hidden_layers, keys.norm, scale=keys.embedding_multiplier)


def _read_head(keys: GraniteKeys, head: HeadSpec) -> HeadSpec:
    return replace(head, scale=1 / keys.logits_scaling)


def _write(config: ModelConfig) -> GraniteKeys:
    layer = config.output_stack.layers[0]
    return GraniteKeys(
        **rms_keys(config),
        attention_bias=layer.attention.output_bias,
        mlp_bias=layer.feed_forward.bias,
        embedding_multiplier=config.output_stack.tokens.scale,
        attention_multiplier=layer.attention.scale,
        residual_multiplier=layer.attention_residual.scale,
        logits_scaling=_divisor(config.head.scale if config.head else 1.0),
    )


def _divisor(scale: float) -> float:
    """The number whose inverse is exactly `scale`, where rounding leaves one."""
    near = 1 / scale
    candidates = (near, math.nextafter(near, math.inf), math.nextafter(near, 0))
    return next((divisor for divisor in candidates if 1 / divisor == scale), near)


FAMILY = family(
    key="granite",
    label="Granite",
    architectures=architectures("Granite"),
    keys=GraniteKeys,
    read=_read,
    write=_write,
    read_head=_read_head,
)
