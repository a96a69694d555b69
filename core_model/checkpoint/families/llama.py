"""Llama, 1 to 3 (Touvron et al. 2023): rotary positions, RMS norms, a gated feed-forward, grouped queries."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.llama_like import (
    EVERY_TASK,
    NAMES,
    SPANS_APART,
    RmsKeys,
    llama_family,
    llama_keys,
    rms_plan,
)
from core_model.config import ModelConfig, StackConfig


@dataclass(frozen=True, kw_only=True)
class LlamaKeys(RmsKeys):
    """The keys of config.json that decide what is computed."""

    attention_bias: bool = False
    mlp_bias: bool = False


def _read(keys: LlamaKeys) -> StackConfig:
    plan = rms_plan(keys)
    attention, feed_forward = plan.attention(bias=keys.attention_bias), plan.feed_forward(bias=keys.mlp_bias)
    return plan.stack([plan.layer(attention=attention, feed_forward=feed_forward)] * plan.n_layers)


def _write(config: ModelConfig) -> LlamaKeys:
    layer = config.output_stack.layers[0]
    return LlamaKeys(**llama_keys(config), attention_bias=layer.attention.query_bias, mlp_bias=layer.feed_forward.bias)


FAMILY = llama_family(
    _read,
    _write,
    key="llama",
    label="Llama",
    architectures=architectures("Llama", *EVERY_TASK),
    keys=LlamaKeys,
    names=replace(NAMES, written_prefixes=SPANS_APART),
)
