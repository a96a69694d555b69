"""Gemma (Gemma team 2024): Llama with gains of 1 + weight, token vectors times sqrt(width) and a gated GELU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Count
from core_model.checkpoint.families.llama_like import RmsKeys, llama_family, llama_keys, rms_plan
from core_model.checkpoint.families.plan import Plan
from core_model.config import LayerSpec, ModelConfig, NormSpec, StackConfig
from core_model.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class GemmaLikeKeys(RmsKeys):
    """The keys of config.json that Gemma's generations share."""

    head_dim: Count | None = 256
    max_position_embeddings: Count = 8192
    attention_bias: bool = False
    use_bidirectional_attention: bool | None = None

    @property
    def norm(self) -> NormSpec:
        """The norm of every place."""
        return NormSpec(kind="rms", eps=self.rms_norm_eps, bias=False, unit_offset=True)

    def require_causal(self) -> None:
        """ConfigError when the keys ask for attention in both directions."""
        if self.use_bidirectional_attention:
            raise ConfigError(
                "use_bidirectional_attention is true in config.json: this family is read with causal attention only"
            )


@dataclass(frozen=True, kw_only=True)
class GemmaKeys(GemmaLikeKeys):
    """The keys of config.json that decide what is computed."""

    num_key_value_heads: Count | None = 16
    hidden_act: str | None = "gelu_pytorch_tanh"


def gemma_stack(plan: Plan, layers: Iterable[LayerSpec]) -> StackConfig:
    """The decoder of these layers, token vectors times sqrt(width)."""
    return plan.stack(layers, embedding=plan.embedding(scale=plan.d_model**0.5))


def _read(keys: GemmaKeys) -> StackConfig:
    keys.require_causal()
    if keys.hidden_act == "gelu":  # what the first releases say and do not mean
        keys = replace(keys, hidden_act="gelu_pytorch_tanh")
    plan = rms_plan(keys)
    layer = plan.layer(attention=plan.attention(bias=keys.attention_bias))
    return gemma_stack(plan, [layer] * plan.n_layers)


def _write(config: ModelConfig) -> GemmaKeys:
    return GemmaKeys(**llama_keys(config), attention_bias=config.output_stack.layers[0].attention.output_bias)


FAMILY = llama_family(
    _read,
    _write,
    key="gemma",
    label="Gemma",
    architectures=architectures("Gemma", "sequence_classes", "token_classes"),
    keys=GemmaKeys,
    tied_by_default=True,
)
