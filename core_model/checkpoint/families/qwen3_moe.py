"""Qwen3-MoE (Yang et al. 2025): Qwen3 with many small experts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Count
from core_model.checkpoint.families.llama_like import EVERY_TASK, SPANS_APART, llama_family, rms_plan
from core_model.checkpoint.families.qwen2_moe import MOE_PLACES, NAMES, QwenMoeKeys, moe_keys, with_experts
from core_model.config import MaskSpec, ModelConfig, QueryKeyNorm, StackConfig


@dataclass(frozen=True, kw_only=True)
class Qwen3MoeKeys(QwenMoeKeys):
    """The keys of config.json that decide what is computed."""

    num_key_value_heads: Count | None = 4
    num_experts: Count = 128
    num_experts_per_tok: Count = 8
    moe_intermediate_size: Count = 768
    attention_bias: bool = False


def _read(keys: Qwen3MoeKeys) -> StackConfig:
    plan = rms_plan(keys)
    attention = plan.attention(
        bias=keys.attention_bias,
        query_key_norm=QueryKeyNorm(norm=plan.norm, over="head"),
        mask=MaskSpec(causal=True, window=keys.window),  # of every layer, whatever layer_types says
    )
    return plan.stack(with_experts(keys, plan, [plan.layer(attention=attention)] * plan.n_layers))


def _write(config: ModelConfig) -> Qwen3MoeKeys:
    return Qwen3MoeKeys(**moe_keys(config), attention_bias=config.output_stack.layers[0].attention.output_bias)


FAMILY = llama_family(
    _read,
    _write,
    key="qwen3_moe",
    label="Qwen3-MoE",
    architectures=architectures("Qwen3Moe", *EVERY_TASK),
    keys=Qwen3MoeKeys,
    names=replace(NAMES, written_prefixes=SPANS_APART),
    places=MOE_PLACES,
    aliases={"num_local_experts": "num_experts"},
)
