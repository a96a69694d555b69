"""Command R (Cohere 2024): attention beside feed-forward behind one norm, rotary positions of neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Positive
from core_model.checkpoint.families.llama_like import (
    LlamaLikeKeys,
    attention,
    family,
    feed_forward,
    final_eps,
    rotary,
    shared_keys,
    stack,
)
from core_model.config import HeadSpec, LayerSpec, ModelConfig, NormSpec, QueryKeyNorm, ResidualSpec, StackConfig

_BASE = 5e5


@dataclass(frozen=True, kw_only=True)
class CohereKeys(LlamaLikeKeys):
    """The keys of config.json that decide what is computed."""

    layer_norm_eps: Positive = 1e-5
    logit_scale: Positive = 0.0625
    attention_bias: bool = False
    use_qk_norm: bool | None = False


def _read(keys: CohereKeys) -> StackConfig:
    norm = NormSpec(eps=keys.layer_norm_eps, bias=False)
    layer = LayerSpec(
        attention=attention(
            keys,
            qkv_bias=keys.attention_bias,
            output_bias=keys.attention_bias,
            position=replace(rotary(keys, base=_BASE), layout="interleaved"),
            query_key_norm=QueryKeyNorm(norm=norm, over="heads") if keys.use_qk_norm else None,
        ),
        attention_residual=ResidualSpec(before=norm),
        feed_forward=feed_forward(keys),
        feed_forward_residual=ResidualSpec(),
        parallel=True,
        shared_norm=True,
    )
    return stack(keys, [layer] * keys.num_hidden_layers, norm)


def _read_head(keys: CohereKeys, head: HeadSpec) -> HeadSpec:
    return replace(head, scale=keys.logit_scale)


def _write(config: ModelConfig) -> CohereKeys:
    attends = config.output_stack.layers[0].attention
    return CohereKeys(
        **shared_keys(config),
        layer_norm_eps=final_eps(config),
        logit_scale=config.head.scale if config.head else 1.0,
        attention_bias=attends.output_bias,
        use_qk_norm=attends.query_key_norm is not None,
    )


FAMILY = family(
    key="cohere",
    label="Cohere",
    architectures=architectures("Cohere"),
    keys=CohereKeys,
    read=_read,
    write=_write,
    read_head=_read_head,
    eps="layer_norm_eps",
    tied_by_default=True,
)
