"""Layers that see a window of recent tokens only, as config.json says it for each layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

from core_model.config import LayerSpec, ModelConfig
from core_model.errors import ConfigError
from core_model.wording import shown

_FULL, _SLIDING = "full_attention", "sliding_attention"


class LayerCount(Protocol):
    """Keys that say how many layers there are."""

    @property
    def num_hidden_layers(self) -> int: ...


def layer_windows(
    keys: LayerCount, kinds: list[str] | None, window: int | None, is_windowed: Callable[[int], bool]
) -> tuple[int | None, ...]:
    """The window of each layer, None where it sees all: as `kinds` (layer_types) says, else where `is_windowed`."""
    n_layers = keys.num_hidden_layers
    if kinds is None:
        kinds = [_SLIDING if is_windowed(i) else _FULL for i in range(n_layers)]
    if len(kinds) != n_layers:
        raise ConfigError(f"layer_types has {len(kinds)} entries in config.json: expected {n_layers}, one a layer")
    if unknown := [kind for kind in kinds if kind not in (_FULL, _SLIDING)]:
        raise ConfigError(
            f"layer_types has {shown(repr(unknown[0]))} in config.json: expected {_FULL} or {_SLIDING} for each layer"
        )
    if _SLIDING in kinds and not window:
        raise ConfigError(f"layer_types has {_SLIDING} in config.json: a sliding_window, and in use, is needed for it")
    return tuple(window if kind == _SLIDING else None for kind in kinds)


def windowed(layer: LayerSpec, windows: Iterable[int | None]) -> tuple[LayerSpec, ...]:
    """The layer once for each window."""
    masks = [replace(layer.attention.mask, window=window) for window in windows]
    return tuple(replace(layer, attention=replace(layer.attention, mask=mask)) for mask in masks)


def window_keys(config: ModelConfig, *, unused: int | None = None) -> dict[str, Any]:
    """layer_types and sliding_window of a config; `unused` for models of which the library asks one no layer uses."""
    windows = [layer.attention.mask.window for layer in config.output_stack.layers]
    return {
        "layer_types": [_FULL if window is None else _SLIDING for window in windows],
        "sliding_window": next((window for window in windows if window is not None), unused),
    }
