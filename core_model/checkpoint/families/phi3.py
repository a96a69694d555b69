"""Phi-3 and 4 (Abdin et al. 2024): Llama with fused projections and, for long inputs, LongRoPE (Ding et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.family import row
from core_model.checkpoint.families.fields import Count, Positive, Rate
from core_model.checkpoint.families.llama_like import (
    PRE_NORMS,
    RmsKeys,
    attention,
    family,
    feed_forward,
    layer_rows,
    name_table,
    rms_keys,
    stack,
)
from core_model.config import LayerSpec, MaskSpec, ModelConfig, ResidualSpec, RotaryPositions, StackConfig

_OLD_NAMES = ("su", "yarn")
"""What the first releases called LongRoPE."""


@dataclass(frozen=True, kw_only=True)
class Phi3Keys(RmsKeys):
    """The keys of config.json that decide what is computed."""

    rms_norm_eps: Positive = 1e-5
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
    mask = MaskSpec(causal=True, window=keys.sliding_window)
    residual = ResidualSpec(before=keys.norm, dropout=keys.resid_pdrop)
    layer = LayerSpec(
        attention=attention(_with_longrope(keys), mask=mask),
        attention_residual=residual,
        feed_forward=feed_forward(keys),
        feed_forward_residual=residual,
    )
    return stack(keys, [layer] * keys.num_hidden_layers, keys.norm, dropout=keys.embd_pdrop)


def _write(config: ModelConfig) -> Phi3Keys:
    layer = config.output_stack.layers[0]
    position = layer.attention.position
    scaling = position.scaling if isinstance(position, RotaryPositions) else None
    return Phi3Keys(
        **rms_keys(config),
        original_max_position_embeddings=scaling.original_length if scaling else 4096,
        sliding_window=layer.attention.mask.window,
        resid_pdrop=layer.attention_residual.dropout,
        embd_pdrop=config.output_stack.tokens.dropout,
    )


_PARTS = "decoder.layers.{i}."
_LAYER = (
    row("layers.{i}.self_attn.qkv_proj.weight", *(f"{_PARTS}attention.{x}.weight" for x in ("query", "key", "value"))),
    row("layers.{i}.mlp.gate_up_proj.weight", *(f"{_PARTS}feed_forward.{x}.weight" for x in ("gate", "input"))),
    *layer_rows({"self_attn.o_proj.*": "attention.output.*", "mlp.down_proj.*": "feed_forward.output.*"}),
)

FAMILY = family(
    key="phi3",
    label="Phi-3",
    architectures=architectures("Phi3", "sequence_classes", "token_classes"),
    keys=Phi3Keys,
    read=_read,
    write=_write,
    names=name_table(*_LAYER, *PRE_NORMS),
)
