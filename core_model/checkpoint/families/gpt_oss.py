"""gpt-oss (OpenAI 2025): attention sinks, every other layer windowed, experts with a bounded gate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from core_model.checkpoint.families.conversion import Joined
from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.experts import mixture, read_experts
from core_model.checkpoint.families.family import Row, layer_rows, row
from core_model.checkpoint.families.fields import Count, Positive
from core_model.checkpoint.families.llama_like import (
    ATTENTION,
    PRE_NORMS,
    RmsKeys,
    llama_family,
    llama_keys,
    llama_names,
    rms_plan,
)
from core_model.checkpoint.families.rotary import RopeKeys
from core_model.checkpoint.families.windows import layer_windows, window_keys, windowed
from core_model.config import ModelConfig, StackConfig
from core_model.errors import ConfigError

_BASE, _SIGMOID_GAIN = 1.5e5, 1.702
_ROPE = RopeKeys(
    rope_type="yarn",
    factor=32.0,
    beta_fast=32.0,
    beta_slow=1.0,
    truncate=False,
    original_max_position_embeddings=4096,
)
"""What a config without words about it means."""


@dataclass(frozen=True, kw_only=True)
class GptOssKeys(RmsKeys):
    """The keys of config.json that decide what is computed."""

    num_key_value_heads: Count | None = 8
    head_dim: Count | None = 64
    max_position_embeddings: Count = 131072
    rms_norm_eps: Positive = 1e-5
    attention_bias: bool = True
    sliding_window: Count | None = 128
    layer_types: list[str] | None = None
    num_local_experts: Count = 128
    num_experts_per_tok: Count = 4
    swiglu_alpha: Positive = _SIGMOID_GAIN
    swiglu_limit: Positive = 7.0
    rope_parameters: RopeKeys | None = _ROPE


def _read(keys: GptOssKeys) -> StackConfig:
    if keys.swiglu_alpha != _SIGMOID_GAIN:
        raise ConfigError(f"swiglu_alpha is {keys.swiglu_alpha} in config.json: only {_SIGMOID_GAIN} is known")
    plan = rms_plan(keys, base=_BASE, activation="gelu_sigmoid")
    experts = read_experts(keys, "num_local_experts", renormalize=True, router_bias=True)
    layer = plan.layer(
        attention=plan.attention(bias=keys.attention_bias, sinks=True),
        feed_forward=plan.feed_forward(bias=True, clip=keys.swiglu_limit, unit_offset=True, experts=experts),
    )
    windows = layer_windows(keys, keys.layer_types, keys.sliding_window, lambda i: i % 2 == 0)
    return plan.stack(windowed(layer, windows))


def _write(config: ModelConfig) -> GptOssKeys:
    spec, experts = mixture(config)
    return GptOssKeys(
        **{**llama_keys(config), "hidden_act": "silu"},  # not what is computed, but what the library expects
        **window_keys(config, unused=128),
        attention_bias=config.output_stack.layers[0].attention.output_bias,
        num_local_experts=experts.n_experts,
        num_experts_per_tok=experts.n_active,
        swiglu_limit=spec.clip or 7.0,
    )


def _experts(config: ModelConfig) -> Iterator[Row]:
    """Experts stored [in, out], their biases apart; of gate and input every other output."""
    theirs, ours = "layers.{i}.mlp.experts", "decoder.layers.{i}.feed_forward.experts"
    turns = Joined(n_groups=config.output_stack.layers[0].feed_forward.d_hidden, axis=1, transposed=True)
    for suffix, kind in (("", "weight"), ("_bias", "bias")):
        both = (f"{ours}.gate.{kind}", f"{ours}.input.{kind}")
        yield row(f"{theirs}.gate_up_proj{suffix}", *both, conversion=turns)
        yield row(f"{theirs}.down_proj{suffix}", f"{ours}.output.{kind}", conversion=Joined(axis=1, transposed=True))


_LAYER = layer_rows("layers.{i}", {"self_attn.sinks": "attention.sinks", "mlp.router.*": "feed_forward.router.*"})

FAMILY = llama_family(
    _read,
    _write,
    key="gpt_oss",
    label="gpt-oss",
    architectures=architectures("GptOss", "sequence_classes", "token_classes"),
    keys=GptOssKeys,
    names=llama_names(*ATTENTION, *_LAYER, *PRE_NORMS, of_config=_experts),
)
