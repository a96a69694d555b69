"""Granite 3 (IBM 2024): Llama with multipliers of embeddings, scores, residual branches and logits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Positive
from core_model.checkpoint.families.llama_like import RmsKeys, llama_family, llama_keys, rms_plan
from core_model.config import ModelConfig, StackConfig


@dataclass(frozen=True, kw_only=True)
class GraniteKeys(RmsKeys):
    """The keys of config.json that decide what is computed."""

    attention_bias: bool = False
    mlp_bias: bool = False
    embedding_multiplier: Positive = 1.0
    attention_multiplier: Positive = 1.0
    residual_multiplier: Positive = 1.0
    logits_scaling: Positive = 1.0

    @property
    def logits(self) -> Mapping[str, Any]:
        """Logits are divided."""
        return {"scale": 1 / self.logits_scaling}


def _read(keys: GraniteKeys) -> StackConfig:
    plan = rms_plan(keys)
    layer = plan.layer(
        attention=plan.attention(bias=keys.attention_bias, scale=keys.attention_multiplier),
        feed_forward=plan.feed_forward(bias=keys.mlp_bias),
        residual=plan.residual(scale=keys.residual_multiplier),
    )
    return plan.stack([layer] * plan.n_layers, embedding=plan.embedding(scale=keys.embedding_multiplier))


def _write(config: ModelConfig) -> GraniteKeys:
    layer = config.output_stack.layers[0]
    return GraniteKeys(
        **llama_keys(config),
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


FAMILY = llama_family(
    _read,
    _write,
    key="granite",
    label="Granite",
    architectures=architectures("Granite"),
    keys=GraniteKeys,
)
