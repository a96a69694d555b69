"""Command R (Cohere 2024): attention beside feed-forward behind one norm, rotary positions of neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Count, Positive
from core_model.checkpoint.families.llama_like import (
    PLACES,
    LlamaLikeKeys,
    llama_family,
    llama_keys,
    llama_plan,
    rotary,
)
from core_model.checkpoint.families.plan import side_by_side
from core_model.config import ModelConfig, NormSpec, QueryKeyNorm, StackConfig

_BASE = 5e5
_PLACES = {**PLACES, "eps": "layer_norm_eps"}


@dataclass(frozen=True, kw_only=True)
class CohereKeys(LlamaLikeKeys):
    """The keys of config.json that decide what is computed."""

    max_position_embeddings: Count = 8192
    layer_norm_eps: Positive = 1e-5
    logit_scale: Positive = 0.0625
    attention_bias: bool = False
    use_qk_norm: bool | None = False

    @property
    def logits(self) -> Mapping[str, Any]:
        """Logits are scaled."""
        return {"scale": self.logit_scale}


def _read(keys: CohereKeys) -> StackConfig:
    plan = llama_plan(keys, _PLACES, norm=NormSpec(eps=keys.layer_norm_eps, bias=False))
    position = replace(rotary(keys, plan.head_size, base=_BASE), layout="interleaved")
    norm = QueryKeyNorm(norm=plan.norm, over="heads") if keys.use_qk_norm else None
    layer = plan.layer(attention=plan.attention(bias=keys.attention_bias, position=position, query_key_norm=norm))
    return plan.stack([side_by_side(layer)] * plan.n_layers)


def _write(config: ModelConfig) -> CohereKeys:
    attends = config.output_stack.layers[0].attention
    return CohereKeys(
        **llama_keys(config, _PLACES),
        logit_scale=config.head.scale if config.head else 1.0,
        attention_bias=attends.output_bias,
        use_qk_norm=attends.query_key_norm is not None,
    )


FAMILY = llama_family(
    _read,
    _write,
    key="cohere",
    label="Cohere",
    architectures=architectures("Cohere"),
    keys=CohereKeys,
    places=_PLACES,
    tied_by_default=True,
)
