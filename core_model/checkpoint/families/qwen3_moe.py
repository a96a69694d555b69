"""Qwen3-MoE (Yang et al. 2025): Qwen3 with many small experts."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Count
from core_model.checkpoint.families.llama_like import EVERY_TASK, family, feed_forward, pre_norm, stack
from core_model.checkpoint.families.qwen2_moe import NAMES, QwenMoeKeys, moe_keys, with_experts
from core_model.checkpoint.families.qwen3 import normed_attention
from core_model.config import MaskSpec, ModelConfig, StackConfig


@dataclass(frozen=True, kw_only=True)
class Qwen3MoeKeys(QwenMoeKeys):
    """The keys of config.json that decide what is computed."""

    num_key_value_heads: Count | None = 4
    num_experts: Count = 128
    num_experts_per_tok: Count = 8
    moe_intermediate_size: Count = 768
    attention_bias: bool = False


def _read(keys: Qwen3MoeKeys) -> StackConfig:
    mask = MaskSpec(causal=True, window=keys.window)  # of every layer, whatever layer_types says
    layer = pre_norm(normed_attention(keys, bias=keys.attention_bias, mask=mask), feed_forward(keys), keys.norm)
    return stack(keys, with_experts(keys, [layer] * keys.num_hidden_layers), keys.norm)


def _write(config: ModelConfig) -> Qwen3MoeKeys:
    return Qwen3MoeKeys(**moe_keys(config), attention_bias=config.output_stack.layers[0].attention.output_bias)


FAMILY = family(
    key="qwen3_moe",
    label="Qwen3-MoE",
    architectures=architectures("Qwen3Moe", *EVERY_TASK),
    keys=Qwen3MoeKeys,
    read=_read,
    write=_write,
    names=NAMES,
    questions="transformer.",
    places={"d_hidden": "moe_intermediate_size"},
    aliases={"num_local_experts": "num_experts"},
)
