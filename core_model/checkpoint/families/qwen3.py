"""Qwen3 (Yang et al. 2025): Qwen2 with queries and keys normalised in every head."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Count
from core_model.checkpoint.families.llama_like import EVERY_TASK, NAMES, SPANS_APART, llama_family, rms_plan
from core_model.checkpoint.families.qwen2 import QwenKeys, qwen_keys
from core_model.checkpoint.families.windows import windowed
from core_model.config import ModelConfig, QueryKeyNorm, StackConfig


@dataclass(frozen=True, kw_only=True)
class Qwen3Keys(QwenKeys):
    """The keys of config.json that decide what is computed."""

    num_key_value_heads: Count | None = 32
    head_dim: Count | None = 128
    attention_bias: bool = False


def _read(keys: Qwen3Keys) -> StackConfig:
    plan = rms_plan(keys)
    norm = QueryKeyNorm(norm=plan.norm, over="head")
    layer = plan.layer(attention=plan.attention(bias=keys.attention_bias, query_key_norm=norm))
    return plan.stack(windowed(layer, keys.upper_windows))


def _write(config: ModelConfig) -> Qwen3Keys:
    return Qwen3Keys(**qwen_keys(config), attention_bias=config.output_stack.layers[0].attention.output_bias)


FAMILY = llama_family(
    _read,
    _write,
    key="qwen3",
    label="Qwen3",
    architectures=architectures("Qwen3", *EVERY_TASK),
    keys=Qwen3Keys,
    names=replace(NAMES, written_prefixes=SPANS_APART),
)
