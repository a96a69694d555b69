"""Phi-3 and 4 (Abdin et al. 2024): Llama with fused projections and, for long inputs, LongRoPE (Ding et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.family import QUERY_KEY_VALUE, layer_rows
from core_model.checkpoint.families.fields import Count, Positive, Rate
from core_model.checkpoint.families.llama_like import (
    PRE_NORMS,
    RMS_PLACES,
    RmsKeys,
    llama_family,
    llama_keys,
    llama_names,
    rms_plan,
)
from core_model.config import MaskSpec, ModelConfig, RotaryPositions, StackConfig
from core_model.errors import ConfigError

_PLACES = {**RMS_PLACES, "embedding_dropout": "embd_pdrop", "residual_dropout": "resid_pdrop"}
_OLD_NAMES = ("su", "yarn")
"""What the first releases called LongRoPE."""


@dataclass(frozen=True, kw_only=True)
class Phi3Keys(RmsKeys):
    """The keys of config.json that decide what is computed."""

    rms_norm_eps: Positive = 1e-5
    max_position_embeddings: Count = 4096
    original_max_position_embeddings: Count | None = 4096
    sliding_window: Count | None = None
    resid_pdrop: Rate = 0.0
    embd_pdrop: Rate = 0.0


def _with_longrope(keys: Phi3Keys) -> Phi3Keys:
    """The keys with LongRoPE under its later name."""
    rope = keys.rope_scaling or keys.rope_parameters
    if rope is None or rope.kind not in _OLD_NAMES:
        return keys
    return replace(keys, rope_scaling=replace(rope, rope_type="longrope"))


def _read(keys: Phi3Keys) -> StackConfig:
    plan = rms_plan(_with_longrope(keys), _PLACES, share=1.0)
    attention = plan.attention(mask=MaskSpec(causal=True, window=keys.sliding_window))
    return plan.stack([plan.layer(attention=attention)] * plan.n_layers)


def _write(config: ModelConfig) -> Phi3Keys:
    attention = config.output_stack.layers[0].attention
    scaling = attention.position.scaling if isinstance(attention.position, RotaryPositions) else None
    if scaling and scaling.kind != "longrope":
        raise ConfigError(f"this model is no Phi-3: its rotary scaling is {scaling.kind}, where Phi-3 has longrope")
    return Phi3Keys(
        **llama_keys(config, _PLACES),
        original_max_position_embeddings=scaling.original_length if scaling else 4096,
        sliding_window=attention.mask.window,
    )


_LAYER = layer_rows(
    "layers.{i}",
    {
        "self_attn.qkv_proj.*": QUERY_KEY_VALUE,
        "self_attn.o_proj.*": "attention.output.*",
        "mlp.gate_up_proj.*": ("feed_forward.gate.*", "feed_forward.input.*"),
        "mlp.down_proj.*": "feed_forward.output.*",
    },
)

FAMILY = llama_family(
    _read,
    _write,
    key="phi3",
    label="Phi-3",
    architectures=architectures("Phi3", "sequence_classes", "token_classes"),
    keys=Phi3Keys,
    places=_PLACES,
    names=llama_names(*_LAYER, *PRE_NORMS),
)
