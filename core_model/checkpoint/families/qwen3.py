"""Qwen3 (Yang et al. 2025): Qwen2 with queries and keys normalised in every head."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Count
from core_model.checkpoint.families.llama_like import EVERY_TASK, attention, family, feed_forward, pre_norm, stack
from core_model.checkpoint.families.qwen2 import QwenKeys, qwen_keys
from core_model.checkpoint.families.windows import windowed
from core_model.config import AttentionSpec, ModelConfig, QueryKeyNorm, StackConfig


@dataclass(frozen=True, kw_only=True)
class Qwen3Keys(QwenKeys):
    """The keys of config.json that decide what is computed."""

    num_key_value_heads: Count | None = 32
    head_dim: Count | None = 128
    attention_bias: bool = False


def normed_attention(keys: QwenKeys, *, bias: bool, **changes: object) -> AttentionSpec:
    """Attention whose queries and keys are normalised, the same in all heads."""
    norm = QueryKeyNorm(norm=keys.norm, over="head")
    return attention(keys, qkv_bias=bias, output_bias=bias, query_key_norm=norm, **changes)


def _read(keys: Qwen3Keys) -> StackConfig:
    layer = pre_norm(normed_attention(keys, bias=keys.attention_bias), feed_forward(keys), keys.norm)
    return stack(keys, windowed(layer, keys.upper_windows), keys.norm)


def _write(config: ModelConfig) -> Qwen3Keys:
    return Qwen3Keys(**qwen_keys(config), attention_bias=config.output_stack.layers[0].attention.output_bias)


FAMILY = family(
    key="qwen3",
    label="Qwen3",
    architectures=architectures("Qwen3", *EVERY_TASK),
    keys=Qwen3Keys,
    read=_read,
    write=_write,
    questions="transformer.",
)
