"""OLMo (Groeneveld et al. 2024): Llama with norms that learn nothing, and queries, keys and values clipped."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Positive
from core_model.checkpoint.families.llama_like import (
    ATTENTION,
    GATED,
    LlamaLikeKeys,
    attention,
    family,
    feed_forward,
    name_table,
    pre_norm,
    shared_keys,
    stack,
)
from core_model.config import ModelConfig, NormSpec, StackConfig

_NORM = NormSpec(eps=1e-5, weight=False, bias=False)


@dataclass(frozen=True, kw_only=True)
class OlmoKeys(LlamaLikeKeys):
    """The keys of config.json that decide what is computed."""

    attention_bias: bool = False
    clip_qkv: Positive | None = None


def _read(keys: OlmoKeys) -> StackConfig:
    attends = attention(keys, qkv_bias=keys.attention_bias, output_bias=keys.attention_bias, clip=keys.clip_qkv)
    return stack(keys, [pre_norm(attends, feed_forward(keys), _NORM)] * keys.num_hidden_layers, _NORM)


def _write(config: ModelConfig) -> OlmoKeys:
    attends = config.output_stack.layers[0].attention
    return OlmoKeys(**shared_keys(config), attention_bias=attends.output_bias, clip_qkv=attends.clip)


FAMILY = family(
    key="olmo",
    label="OLMo",
    architectures=architectures("Olmo", "sequence_classes"),
    keys=OlmoKeys,
    read=_read,
    write=_write,
    eps=None,
    names=name_table(*ATTENTION, *GATED),
)
