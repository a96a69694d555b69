"""Qwen1.5-MoE and Qwen2-MoE (Yang et al. 2024): many small experts, and one that every token takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.experts import expert_table, mixture, read_experts
from core_model.checkpoint.families.family import layer_rows
from core_model.checkpoint.families.fields import Count, CountOrNone
from core_model.checkpoint.families.llama_like import (
    ATTENTION,
    EVERY_TASK,
    GATED,
    PRE_NORMS,
    RMS_PLACES,
    llama_family,
    rms_plan,
)
from core_model.checkpoint.families.plan import Plan
from core_model.checkpoint.families.qwen2 import QwenKeys, qwen_keys
from core_model.checkpoint.families.windows import layer_windows, windowed
from core_model.config import LayerSpec, ModelConfig, StackConfig


@dataclass(frozen=True, kw_only=True)
class QwenMoeKeys(QwenKeys):
    """The keys about experts. Layers in mlp_only_layers, and all but every decoder_sparse_step-th, have none."""

    num_experts: Count
    num_experts_per_tok: Count
    moe_intermediate_size: Count
    norm_topk_prob: bool = False
    decoder_sparse_step: Count = 1
    mlp_only_layers: list[CountOrNone] | None = None

    def has_experts(self, layer: int) -> bool:
        """Whether a layer is a mixture of experts."""
        return layer not in (self.mlp_only_layers or ()) and (layer + 1) % self.decoder_sparse_step == 0


@dataclass(frozen=True, kw_only=True)
class Qwen2MoeKeys(QwenMoeKeys):
    """The keys of config.json that decide what is computed."""

    num_key_value_heads: Count | None = 16
    num_experts: Count = 60
    num_experts_per_tok: Count = 4
    moe_intermediate_size: Count = 1408
    shared_expert_intermediate_size: Count = 5632
    qkv_bias: bool = True


def with_experts(
    keys: QwenMoeKeys, plan: Plan, layers: Iterable[LayerSpec], *, d_shared: int = 0
) -> tuple[LayerSpec, ...]:
    """The layers, those that have experts with them."""
    experts = read_experts(keys, "num_experts", renormalize=keys.norm_topk_prob, d_shared=d_shared)
    routed = plan.feed_forward(d_hidden=keys.moe_intermediate_size, experts=experts)
    return tuple(
        replace(layer, feed_forward=routed) if keys.has_experts(i) else layer for i, layer in enumerate(layers)
    )


def moe_keys(config: ModelConfig) -> dict[str, Any]:
    """The `QwenMoeKeys` of a config, by name."""
    spec, experts = mixture(config)
    every = [layer.feed_forward for layer in config.output_stack.layers]
    dense = [i for i, other in enumerate(every) if other.experts is None]
    return {
        **qwen_keys(config),
        "intermediate_size": every[dense[0]].d_hidden if dense else spec.d_hidden,
        "num_experts": experts.n_experts,
        "num_experts_per_tok": experts.n_active,
        "moe_intermediate_size": spec.d_hidden,
        "norm_topk_prob": experts.renormalize,
        "mlp_only_layers": dense,
    }


def _read(keys: Qwen2MoeKeys) -> StackConfig:
    plan = rms_plan(keys)
    layer = plan.layer(attention=plan.attention(bias=keys.qkv_bias, output_bias=False))
    is_windowed = keys.use_sliding_window
    windows = layer_windows(
        keys, keys.layer_types, keys.window, lambda i: is_windowed and i % 2 == 0 and i < keys.max_window_layers
    )
    return plan.stack(with_experts(keys, plan, windowed(layer, windows), d_shared=keys.shared_expert_intermediate_size))


def _write(config: ModelConfig) -> Qwen2MoeKeys:
    _, experts = mixture(config)
    return Qwen2MoeKeys(
        **moe_keys(config),
        shared_expert_intermediate_size=experts.d_shared or 1,
        qkv_bias=config.output_stack.layers[0].attention.query_bias,
    )


_SHARED = layer_rows(
    "layers.{i}.mlp",
    {
        "shared_expert.gate_proj.*": "feed_forward.shared.gate.*",
        "shared_expert.up_proj.*": "feed_forward.shared.input.*",
        "shared_expert.down_proj.*": "feed_forward.shared.output.*",
        "shared_expert_gate.weight": "feed_forward.shared_gate.weight",
    },
)
MOE_PLACES = {**RMS_PLACES, "d_hidden": "moe_intermediate_size"}
NAMES = expert_table(
    *ATTENTION,
    *GATED,
    *PRE_NORMS,
    *_SHARED,
    block="mlp",
    maps={"gate": "gate_proj", "input": "up_proj", "output": "down_proj"},
)

FAMILY = llama_family(
    _read,
    _write,
    key="qwen2_moe",
    label="Qwen2-MoE",
    architectures=architectures("Qwen2Moe", *EVERY_TASK),
    keys=Qwen2MoeKeys,
    names=NAMES,
    places=MOE_PLACES,
)
