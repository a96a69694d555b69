"""StableLM (Bellagente et al. 2024): partly turned heads, layer norms, attention beside feed-forward where asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from core_model.checkpoint.families.conversion import Stacked
from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.family import Row
from core_model.checkpoint.families.fields import Count, Positive, Rate
from core_model.checkpoint.families.llama_like import (
    GATED,
    PLACES,
    PRE_NORMS,
    PROJECTIONS,
    LlamaLikeKeys,
    llama_family,
    llama_keys,
    llama_names,
    llama_plan,
)
from core_model.checkpoint.families.plan import side_by_side
from core_model.config import ModelConfig, NormSpec, QueryKeyNorm, StackConfig
from core_model.errors import ConfigError
from core_model.wording import shown

_SHARE = 0.25
_PLACES = {**PLACES, "eps": "layer_norm_eps"}
_MAX_NORMS = 100_000
"""Norms of single heads, in all layers together."""


@dataclass(frozen=True, kw_only=True)
class StableLmKeys(LlamaLikeKeys):
    """The keys of config.json that decide what is computed; heads share the width, whatever head_dim says."""

    num_key_value_heads: Count | None = 32
    max_position_embeddings: Count = 4096
    layer_norm_eps: Positive = 1e-5
    use_qkv_bias: bool = False
    qk_layernorm: bool = False
    use_parallel_residual: bool = False
    hidden_dropout: Rate = 0.0

    @property
    def query_key_norm(self) -> QueryKeyNorm | None:
        """A gain for every head."""
        if not self.qk_layernorm:
            return None
        if self.num_attention_heads * self.num_hidden_layers > _MAX_NORMS:
            raise ConfigError(
                f"num_attention_heads is {shown(self.num_attention_heads)} in config.json: "
                f"at most {_MAX_NORMS} heads with norms in all layers are read"
            )
        return QueryKeyNorm(norm=NormSpec(eps=self.layer_norm_eps, bias=False), over="heads")


def _read(keys: StableLmKeys) -> StackConfig:
    plan = llama_plan(replace(keys, head_dim=None), _PLACES, share=_SHARE)
    layer = plan.layer(
        attention=plan.attention(bias=keys.use_qkv_bias, output_bias=False, query_key_norm=keys.query_key_norm),
        feed_forward_residual=plan.residual(dropout=keys.hidden_dropout),
    )
    return plan.stack([side_by_side(layer) if keys.use_parallel_residual else layer] * plan.n_layers)


def _write(config: ModelConfig) -> StableLmKeys:
    layer = config.output_stack.layers[0]
    return StableLmKeys(
        **{**llama_keys(config, _PLACES), "head_dim": None},
        use_qkv_bias=layer.attention.query_bias,
        qk_layernorm=layer.attention.query_key_norm is not None,
        use_parallel_residual=layer.parallel,
        hidden_dropout=layer.feed_forward_residual.dropout,
    )


def _head_norms(config: ModelConfig) -> Iterator[Row]:
    """The norms of queries and keys, one a head."""
    spec = config.output_stack.layers[0].attention
    if spec.query_key_norm is None:
        return
    for theirs, ours, n_heads in (("q", "query", spec.n_heads), ("k", "key", spec.n_key_heads)):
        yield Row(
            theirs=tuple(f"layers.{{i}}.self_attn.{theirs}_layernorm.norms.{h}.weight" for h in range(n_heads)),
            ours=(f"decoder.layers.{{i}}.attention.{ours}_norm.weight",),
            conversion=Stacked(),
        )


FAMILY = llama_family(
    _read,
    _write,
    key="stablelm",
    label="StableLM",
    architectures=architectures("StableLm", "sequence_classes", "token_classes"),
    keys=StableLmKeys,
    names=llama_names(*PROJECTIONS, *GATED, *PRE_NORMS, of_config=_head_norms),
    places=_PLACES,
)
