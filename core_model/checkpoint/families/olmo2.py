"""OLMo 2 (OLMo team 2025): Llama with the norms behind attention and feed-forward, queries and keys normalised."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Positive
from core_model.checkpoint.families.llama_like import (
    ATTENTION,
    BRANCH_NORMS,
    GATED,
    RmsKeys,
    llama_family,
    llama_keys,
    llama_names,
    rms_plan,
)
from core_model.config import ModelConfig, QueryKeyNorm, StackConfig


@dataclass(frozen=True, kw_only=True)
class Olmo2Keys(RmsKeys):
    """The keys of config.json that decide what is computed."""

    rms_norm_eps: Positive = 1e-5
    attention_bias: bool = False


def _read(keys: Olmo2Keys) -> StackConfig:
    plan = rms_plan(keys)
    norm = QueryKeyNorm(norm=plan.norm, over="width")
    layer = plan.layer(
        attention=plan.attention(bias=keys.attention_bias, query_key_norm=norm),
        residual=plan.residual(before=None, after=plan.norm),
    )
    return plan.stack([layer] * plan.n_layers)


def _write(config: ModelConfig) -> Olmo2Keys:
    return Olmo2Keys(**llama_keys(config), attention_bias=config.output_stack.layers[0].attention.output_bias)


FAMILY = llama_family(
    _read,
    _write,
    key="olmo2",
    label="OLMo 2",
    architectures=architectures("Olmo2", "sequence_classes"),
    keys=Olmo2Keys,
    names=llama_names(*ATTENTION, *GATED, *BRANCH_NORMS),
)
