"""OLMo (Groeneveld et al. 2024): Llama with norms that learn nothing, and queries, keys and values clipped."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Positive
from core_model.checkpoint.families.llama_like import (
    ATTENTION,
    GATED,
    PLACES,
    LlamaLikeKeys,
    llama_family,
    llama_keys,
    llama_names,
    llama_plan,
)
from core_model.config import ModelConfig, NormSpec, StackConfig


@dataclass(frozen=True, kw_only=True)
class OlmoKeys(LlamaLikeKeys):
    """The keys of config.json that decide what is computed."""

    attention_bias: bool = False
    clip_qkv: Positive | None = None


def _read(keys: OlmoKeys) -> StackConfig:
    plan = llama_plan(keys, PLACES, norm=NormSpec(weight=False, bias=False))
    attention = plan.attention(bias=keys.attention_bias, clip=keys.clip_qkv)
    return plan.stack([plan.layer(attention=attention)] * plan.n_layers)


def _write(config: ModelConfig) -> OlmoKeys:
    attends = config.output_stack.layers[0].attention
    return OlmoKeys(**llama_keys(config, PLACES), attention_bias=attends.output_bias, clip_qkv=attends.clip)


FAMILY = llama_family(
    _read,
    _write,
    key="olmo",
    label="OLMo",
    architectures=architectures("Olmo", "sequence_classes"),
    keys=OlmoKeys,
    places=PLACES,
    names=llama_names(*ATTENTION, *GATED),
)
