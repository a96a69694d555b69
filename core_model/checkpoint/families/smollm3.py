"""SmolLM3 (Hugging Face 2025): Llama with every fourth layer without positions (Yang et al. 2025, "RNoPE")."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Count
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
from core_model.config import LayerSpec, ModelConfig, StackConfig
from core_model.errors import ConfigError

_BASE = 2e6


@dataclass(frozen=True, kw_only=True)
class SmolLm3Keys(RmsKeys):
    """The keys of config.json that decide what is computed; no_rope_layers has 1 for a layer with positions."""

    num_key_value_heads: Count | None = 4
    max_position_embeddings: Count = 32768
    attention_bias: bool = False
    mlp_bias: bool = False
    use_sliding_window: bool = False
    sliding_window: Count | None = None
    no_rope_layers: list[int] | None = None
    no_rope_layer_interval: Count = 4
    layer_types: list[str] | None = None


def _turning(keys: SmolLm3Keys) -> list[bool]:
    """Whether each layer has positions."""
    n_layers, stated = keys.num_hidden_layers, keys.no_rope_layers
    if stated is None:
        return [(i + 1) % keys.no_rope_layer_interval != 0 for i in range(n_layers)]
    if len(stated) < n_layers:
        raise ConfigError(f"no_rope_layers has {len(stated)} entries in config.json: expected {n_layers}, one a layer")
    return [bool(entry) for entry in stated[:n_layers]]


def _read(keys: SmolLm3Keys) -> StackConfig:
    plan = rms_plan(keys, base=_BASE)
    attention, feed_forward = plan.attention(bias=keys.attention_bias), plan.feed_forward(bias=keys.mlp_bias)
    layer = plan.layer(attention=attention, feed_forward=feed_forward)
    turning = _turning(keys)
    has_window = keys.use_sliding_window and keys.sliding_window is not None
    windows = layer_windows(keys, keys.layer_types, keys.sliding_window, lambda i: has_window and not turning[i])
    layers = [
        spec if turns else _without_positions(spec)
        for spec, turns in zip(windowed(layer, windows), turning, strict=True)
    ]
    return plan.stack(layers)


def _without_positions(layer: LayerSpec) -> LayerSpec:
    return replace(layer, attention=replace(layer.attention, position=None))


def _write(config: ModelConfig) -> SmolLm3Keys:
    layers = config.output_stack.layers
    windows = window_keys(config)
    return SmolLm3Keys(
        **llama_keys(config),
        **windows,
        attention_bias=layers[0].attention.output_bias,
        mlp_bias=layers[0].feed_forward.bias,
        use_sliding_window=windows["sliding_window"] is not None,
        no_rope_layers=[int(layer.attention.position is not None) for layer in layers],
    )


FAMILY = llama_family(
    _read,
    _write,
    key="smollm3",
    label="SmolLM3",
    architectures=architectures("SmolLM3", *EVERY_TASK),
    keys=SmolLm3Keys,
    names=replace(NAMES, written_prefixes=SPANS_APART),
    tied_by_default=True,
)
