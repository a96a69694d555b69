"""Qwen2 (Yang et al. 2024): Llama with biases of queries, keys and values, and a window in its upper layers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Count, CountOrNone
from core_model.checkpoint.families.llama_like import (
    EVERY_TASK,
    NAMES,
    SPANS_APART,
    RmsKeys,
    llama_family,
    llama_keys,
    rms_plan,
)
from core_model.checkpoint.families.windows import layer_windows, window_keys, windowed
from core_model.config import ModelConfig, StackConfig


@dataclass(frozen=True, kw_only=True)
class QwenKeys(RmsKeys):
    """The keys of config.json that Qwen's generations share. A window counts only where use_sliding_window is true."""

    max_position_embeddings: Count = 32768
    use_sliding_window: bool = False
    sliding_window: CountOrNone | None = 4096
    max_window_layers: CountOrNone = 28
    layer_types: list[str] | None = None

    @property
    def window(self) -> int | None:
        """The window of layers that have one."""
        return self.sliding_window if self.use_sliding_window else None

    @property
    def upper_windows(self) -> tuple[int | None, ...]:
        """The window of each layer: as layer_types says, else of those from max_window_layers on."""
        has_window = self.window is not None
        return layer_windows(self, self.layer_types, self.window, lambda i: has_window and i >= self.max_window_layers)


@dataclass(frozen=True, kw_only=True)
class Qwen2Keys(QwenKeys):
    """The keys of config.json that decide what is computed."""

    num_key_value_heads: Count | None = 32


def qwen_keys(config: ModelConfig) -> dict[str, Any]:
    """The `QwenKeys` of a config, by name."""
    windows = window_keys(config)
    return {**llama_keys(config), **windows, "use_sliding_window": windows["sliding_window"] is not None}


def _read(keys: Qwen2Keys) -> StackConfig:
    plan = rms_plan(keys)
    layer = plan.layer(attention=plan.attention(bias=True, output_bias=False))
    return plan.stack(windowed(layer, keys.upper_windows))


def _write(config: ModelConfig) -> Qwen2Keys:
    return Qwen2Keys(**qwen_keys(config))


FAMILY = llama_family(
    _read,
    _write,
    key="qwen2",
    label="Qwen2",
    architectures=architectures("Qwen2", *EVERY_TASK),
    keys=Qwen2Keys,
    names=replace(NAMES, written_prefixes=SPANS_APART),
)
