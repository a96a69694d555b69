"""Gemma 2 (Gemma team 2024): Gemma with capped scores and logits, norms around both, every other layer windowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Count, Positive
from core_model.checkpoint.families.gemma import GemmaLikeKeys, gemma_stack
from core_model.checkpoint.families.llama_like import (
    ATTENTION,
    BRANCH_NORMS,
    GATED,
    RMS_PLACES,
    llama_family,
    llama_keys,
    llama_names,
    rms_plan,
)
from core_model.checkpoint.families.plan import Plan
from core_model.checkpoint.families.windows import layer_windows, window_keys, windowed
from core_model.config import LayerSpec, ModelConfig, StackConfig

PLACES = {**RMS_PLACES, "activation": "hidden_activation"}


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

    @property
    def logits(self) -> Mapping[str, Any]:
        """Logits are bounded."""
        return {"soft_cap": self.final_logit_softcapping}


def gemma_layer(keys: Gemma2Keys, plan: Plan, **changes: Any) -> LayerSpec:
    """A layer that sees everything; `changes` are fields of its attention."""
    scale = keys.query_pre_attn_scalar**-0.5
    attention = plan.attention(bias=keys.attention_bias, scale=scale, **changes)
    return plan.layer(attention=attention, residual=plan.residual(after=plan.norm))


def gemma_keys(config: ModelConfig) -> dict[str, Any]:
    """The keys of Gemma 2 and later, by name."""
    layer = config.output_stack.layers[0]
    return {
        **llama_keys(config, PLACES),
        **window_keys(config, unused=4096),
        "attention_bias": layer.attention.output_bias,
        "query_pre_attn_scalar": round(layer.attention.scale**-2),  # the library takes whole numbers only
        "attn_logit_softcapping": layer.attention.soft_cap,
        "final_logit_softcapping": config.head.soft_cap if config.head else None,
    }


def _read(keys: Gemma2Keys) -> StackConfig:
    keys.require_causal()
    windows = layer_windows(keys, keys.layer_types, keys.sliding_window, lambda i: i % 2 == 0)
    plan = rms_plan(keys, PLACES)
    return gemma_stack(plan, windowed(gemma_layer(keys, plan, soft_cap=keys.attn_logit_softcapping), windows))


def _write(config: ModelConfig) -> Gemma2Keys:
    return Gemma2Keys(**gemma_keys(config))


NAMES = llama_names(*ATTENTION, *GATED, *BRANCH_NORMS)

FAMILY = llama_family(
    _read,
    _write,
    key="gemma2",
    label="Gemma 2",
    architectures=architectures("Gemma2", "sequence_classes", "token_classes"),
    keys=Gemma2Keys,
    names=NAMES,
    places=PLACES,
    tied_by_default=True,
)
