"""Gemma 3 (Gemma team 2025), its text model: five windowed layers to a full one, each kind with its own rotary base."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families.fields import Count, Positive
from core_model.checkpoint.families.gemma import gemma_stack
from core_model.checkpoint.families.gemma2 import NAMES, PLACES, Gemma2Keys, gemma_keys, gemma_layer
from core_model.checkpoint.families.llama_like import llama_family, rms_plan, rotary
from core_model.checkpoint.families.plan import Plan
from core_model.checkpoint.families.rotary import RopeKeys, write_rotary
from core_model.checkpoint.families.windows import layer_windows
from core_model.config import LayerSpec, MaskSpec, ModelConfig, QueryKeyNorm, RotaryPositions, StackConfig

_FULL_BASE, _WINDOWED_BASE = 1e6, 1e4


@dataclass(frozen=True, kw_only=True)
class Gemma3Keys(Gemma2Keys):
    """The keys of config.json that decide what is computed.

    rope_theta and rope_scaling (transformers 4) are of full layers, rope_local_base_freq of windowed ones; in
    rope_parameters (5) each kind has its own.
    """

    max_position_embeddings: Count = 131072
    rope_local_base_freq: Positive | None = None
    sliding_window_pattern: Count = 6
    attn_logit_softcapping: Positive | None = None
    final_logit_softcapping: Positive | None = None


def _read(keys: Gemma3Keys) -> StackConfig:
    pattern = keys.sliding_window_pattern
    windows = layer_windows(keys, keys.layer_types, keys.sliding_window, lambda i: (i + 1) % pattern != 0)
    plan = rms_plan(replace(keys, rope_scaling=None, rope_parameters=None), PLACES)
    return gemma_stack(plan, [_layer(keys, plan, window) for window in windows])


def _layer(keys: Gemma3Keys, plan: Plan, window: int | None) -> LayerSpec:
    """A layer of one kind. Its scores have no cap, whatever the keys say (as in the library)."""
    position = _position(keys, plan.head_size, window)
    norm = QueryKeyNorm(norm=plan.norm, over="head")
    return gemma_layer(keys, plan, mask=_mask(keys, window), position=position, query_key_norm=norm)


def _mask(keys: Gemma3Keys, window: int | None) -> MaskSpec:
    """Causal; or in both directions, where half of the window lies on each side."""
    if keys.use_bidirectional_attention:
        return MaskSpec(window=None if window is None else window // 2)
    return MaskSpec(causal=True, window=window)


def _position(keys: Gemma3Keys, head_size: int, window: int | None) -> RotaryPositions:
    nested = keys.rope_parameters or RopeKeys()
    if window is None:
        rope = nested.full_attention or keys.rope_scaling or RopeKeys()
        return rotary(replace(keys, rope_parameters=rope, rope_scaling=None), head_size, base=_FULL_BASE)
    rope = nested.sliding_attention or RopeKeys()
    local = replace(keys, rope_parameters=rope, rope_scaling=None, rope_theta=keys.rope_local_base_freq)
    return rotary(local, head_size, base=_WINDOWED_BASE)


def _write(config: ModelConfig) -> Gemma3Keys:
    masks = [layer.attention.mask for layer in config.output_stack.layers]
    keys = {**gemma_keys(config), **_rope_keys(config), "use_bidirectional_attention": not masks[0].causal}
    if not masks[0].causal:
        keys["sliding_window"] *= 2
    return Gemma3Keys(**keys)


def _rope_keys(config: ModelConfig) -> dict[str, Any]:
    """The positions of both kinds of layers, in both dialects; of a kind without layers the usual."""
    kinds = {
        layer.attention.mask.window is None: layer.attention.position
        for layer in config.output_stack.layers
        if isinstance(layer.attention.position, RotaryPositions)
    }
    full, local = kinds.get(True), kinds.get(False)
    full_keys = write_rotary(full) if full else RopeKeys(rope_type="default", rope_theta=_FULL_BASE)
    local_keys = write_rotary(local) if local else RopeKeys(rope_type="default", rope_theta=_WINDOWED_BASE)
    return {
        "max_position_embeddings": full_keys.original_max_position_embeddings or 2048,
        "partial_rotary_factor": None,
        "rope_theta": full_keys.rope_theta,
        "rope_scaling": full_keys if full and full.scaling else None,
        "rope_local_base_freq": local_keys.rope_theta,
        "rope_parameters": RopeKeys(full_attention=full_keys, sliding_attention=local_keys),
    }


FAMILY = llama_family(
    _read,
    _write,
    key="gemma3_text",
    label="Gemma 3",
    architectures={
        "Gemma3TextModel": None,
        "Gemma3ForCausalLM": "language_model",
        "Gemma3TextForSequenceClassification": "sequence_classes",
    },
    keys=Gemma3Keys,
    names=NAMES,
    places=PLACES,
    tied_by_default=True,
)
