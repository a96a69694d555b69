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
    attention,
    family,
    feed_forward,
    name_table,
    rms_keys,
    stack,
)
from core_model.config import LayerSpec, ModelConfig, QueryKeyNorm, ResidualSpec, StackConfig


@dataclass(frozen=True, kw_only=True)
class Olmo2Keys(RmsKeys):
    """The keys of config.json that decide what is computed."""

    rms_norm_eps: Positive = 1e-5
    attention_bias: bool = False


def _read(keys: Olmo2Keys) -> StackConfig:
    bias, residual = keys.attention_bias, ResidualSpec(after=keys.norm)
    layer = LayerSpec(
        attention=attention(
            keys, qkv_bias=bias, output_bias=bias, query_key_norm=QueryKeyNorm(norm=keys.norm, over="width")
        ),
        attention_residual=residual,
        feed_forward=feed_forward(keys),
        feed_forward_residual=residual,
    )
    return stack(keys, [layer] * keys.num_hidden_layers, keys.norm)


def _write(config: ModelConfig) -> Olmo2Keys:
    return Olmo2Keys(**rms_keys(config), attention_bias=config.output_stack.layers[0].attention.output_bias)


FAMILY = family(
    key="olmo2",
    label="OLMo 2",
    architectures=architectures("Olmo2", "sequence_classes"),
    keys=Olmo2Keys,
    read=_read,
    write=_write,
    names=name_table(*ATTENTION, *GATED, *BRANCH_NORMS),
)
