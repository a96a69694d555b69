"""Llama, 1 to 3 (Touvron et al. 2023): rotary positions, RMS norms, a gated feed-forward, grouped queries."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.llama_like import (
    EVERY_TASK,
    RmsKeys,
    attention,
    family,
    feed_forward,
    pre_norm,
    rms_keys,
    stack,
)
from core_model.config import ModelConfig, StackConfig


@dataclass(frozen=True, kw_only=True)
class LlamaKeys(RmsKeys):
    """The keys of config.json that decide what is computed."""

    attention_bias: bool = False
    mlp_bias: bool = False


def _read(keys: LlamaKeys) -> StackConfig:
    attends = attention(keys, qkv_bias=keys.attention_bias, output_bias=keys.attention_bias)
    layer = pre_norm(attends, feed_forward(keys, bias=keys.mlp_bias), keys.norm)
    return stack(keys, [layer] * keys.num_hidden_layers, keys.norm)


def _write(config: ModelConfig) -> LlamaKeys:
    layer = config.output_stack.layers[0]
    return LlamaKeys(**rms_keys(config), attention_bias=layer.attention.query_bias, mlp_bias=layer.feed_forward.bias)


FAMILY = family(
    key="llama",
    label="Llama",
    architectures=architectures("Llama", *EVERY_TASK),
    keys=LlamaKeys,
    read=_read,
    write=_write,
    questions="transformer.",
)
