"""Mixtral (Jiang et al. 2024): Mistral with eight feed-forward networks a layer, two of them for a token."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.experts import expert_table, mixture, read_experts
from core_model.checkpoint.families.fields import Count, Positive
from core_model.checkpoint.families.llama_like import (
    ATTENTION,
    EVERY_TASK,
    PRE_NORMS,
    RmsKeys,
    llama_family,
    llama_keys,
    rms_plan,
)
from core_model.config import MaskSpec, ModelConfig, StackConfig


@dataclass(frozen=True, kw_only=True)
class MixtralKeys(RmsKeys):
    """The keys of config.json that decide what is computed."""

    num_key_value_heads: Count | None = 8
    max_position_embeddings: Count = 131072
    rms_norm_eps: Positive = 1e-5
    sliding_window: Count | None = None
    num_local_experts: Count = 8
    num_experts_per_tok: Count = 2


def _read(keys: MixtralKeys) -> StackConfig:
    plan = rms_plan(keys, base=1e6)
    layer = plan.layer(
        attention=plan.attention(mask=MaskSpec(causal=True, window=keys.sliding_window)),
        feed_forward=plan.feed_forward(experts=read_experts(keys, "num_local_experts", renormalize=True)),
    )
    return plan.stack([layer] * plan.n_layers)


def _write(config: ModelConfig) -> MixtralKeys:
    _, experts = mixture(config)
    return MixtralKeys(
        **llama_keys(config),
        sliding_window=config.output_stack.layers[0].attention.mask.window,
        num_local_experts=experts.n_experts,
        num_experts_per_tok=experts.n_active,
    )


FAMILY = llama_family(
    _read,
    _write,
    key="mixtral",
    label="Mixtral",
    architectures=architectures("Mixtral", *EVERY_TASK),
    keys=MixtralKeys,
    names=expert_table(
        *ATTENTION,
        *PRE_NORMS,
        block="block_sparse_moe",
        maps={"gate": "w1", "input": "w3", "output": "w2"},
        spellings=[(r"^(layers\.\d+)\.mlp\.", r"\1.block_sparse_moe.")],
    ),
    aliases={"num_experts": "num_local_experts"},
)
