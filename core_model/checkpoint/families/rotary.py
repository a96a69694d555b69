"""Rotary positions as config.json describes them: by rope_theta and rope_scaling, or by rope_parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core_model.checkpoint.families.fields import Count, NotNegative, Positive
from core_model.config import RotaryPositions, RotaryScaling
from core_model.errors import ConfigError
from core_model.wording import shown

DEFAULT_BASE = 10000.0
_PLAIN = ("default", None)


@dataclass(frozen=True, kw_only=True)
class RopeKeys:
    """The keys of rope_scaling (transformers 4) or rope_parameters (5); `type` is the older name of rope_type.

    Where kinds of layers differ, rope_parameters has these keys for each kind.
    """

    rope_type: str | None = None
    type: str | None = None
    rope_theta: Positive | None = None
    partial_rotary_factor: Positive | None = None
    factor: Positive | None = None
    original_max_position_embeddings: Count | None = None
    low_freq_factor: Positive | None = None
    high_freq_factor: Positive | None = None
    beta_fast: Positive | None = None
    beta_slow: Positive | None = None
    mscale: NotNegative | None = None
    mscale_all_dim: NotNegative | None = None
    attention_factor: Positive | None = None
    truncate: bool | None = None
    short_factor: list[Positive] | None = None
    long_factor: list[Positive] | None = None
    full_attention: RopeKeys | None = None
    sliding_attention: RopeKeys | None = None

    @property
    def kind(self) -> str | None:
        """The kind of scaling, under either name."""
        return self.rope_type or self.type


def read_rotary(rope: RopeKeys | None, *, head_size: int, theta: float | None, max_length: int) -> RotaryPositions:
    """The positions these keys describe.

    ConfigError names a key that a kind of scaling needs and has not, or a partial_rotary_factor that makes no pairs.
    """
    rope = rope or RopeKeys()
    share = rope.partial_rotary_factor or 1.0
    n_rotated = int(head_size * min(share, 1.0))
    if share > 1 or n_rotated < 2 or n_rotated % 2:
        raise ConfigError(
            f"partial_rotary_factor is {share} in config.json: {n_rotated} of the {head_size} dimensions of a head "
            "would turn, and they turn in pairs"
        )
    return RotaryPositions(
        n_rotated=n_rotated,
        base=rope.rope_theta or theta or DEFAULT_BASE,
        scaling=None if rope.kind in _PLAIN else _read_scaling(rope, n_rotated, max_length),
    )


def write_rotary(position: RotaryPositions) -> RopeKeys:
    """The keys of rope_parameters that describe these positions of whole heads."""
    scaling = position.scaling
    if scaling is None:
        return RopeKeys(rope_type="default", rope_theta=position.base)
    is_yarn, is_llama3 = scaling.kind == "yarn", scaling.kind == "llama3"
    return RopeKeys(
        rope_type=scaling.kind,
        rope_theta=position.base,
        factor=scaling.factor,
        original_max_position_embeddings=scaling.original_length or None,
        low_freq_factor=scaling.low_frequency_factor if is_llama3 else None,
        high_freq_factor=scaling.high_frequency_factor if is_llama3 else None,
        beta_fast=scaling.beta_fast if is_yarn else None,
        beta_slow=scaling.beta_slow if is_yarn else None,
        attention_factor=scaling.attention_factor if scaling.kind in ("yarn", "longrope") else None,
        truncate=scaling.truncate if is_yarn else None,
        short_factor=list(scaling.short_factors) or None,
        long_factor=list(scaling.long_factors) or None,
    )


def rotary_share(n_rotated: int, head_size: int) -> float:
    """The partial_rotary_factor of which the library, taking the whole part of its product, makes n_rotated."""
    share = n_rotated / head_size
    return share if int(head_size * share) == n_rotated else math.nextafter(share, 1)


def _read_scaling(rope: RopeKeys, n_rotated: int, max_length: int) -> RotaryScaling:
    kind = rope.kind
    original = rope.original_max_position_embeddings or max_length
    if kind == "linear":
        return RotaryScaling(kind="linear", factor=_needed(rope, "factor"))
    if kind == "dynamic":
        return RotaryScaling(kind="dynamic", factor=_needed(rope, "factor"), original_length=max_length)
    if kind == "llama3":
        return RotaryScaling(
            kind="llama3",
            factor=_needed(rope, "factor"),
            original_length=original,
            low_frequency_factor=_needed(rope, "low_freq_factor"),
            high_frequency_factor=_needed(rope, "high_freq_factor"),
        )
    factor = rope.factor or max_length / original
    if kind == "yarn":
        return RotaryScaling(
            kind="yarn",
            factor=factor,
            original_length=original,
            beta_fast=rope.beta_fast or 32.0,
            beta_slow=rope.beta_slow or 1.0,
            truncate=rope.truncate is not False,
            attention_factor=rope.attention_factor or _yarn_attention_factor(rope, factor),
        )
    if kind == "longrope":
        return RotaryScaling(
            kind="longrope",
            factor=factor,
            original_length=original,
            attention_factor=rope.attention_factor or _longrope_attention_factor(factor, original),
            short_factors=_factors(rope, "short_factor", n_rotated),
            long_factors=_factors(rope, "long_factor", n_rotated),
        )
    raise ConfigError(
        f"rope_type is {shown(repr(kind))} in config.json: expected linear, dynamic, yarn, llama3 or longrope"
    )


def _needed(rope: RopeKeys, key: str) -> float:
    value = getattr(rope, key)
    if value is None:
        raise ConfigError(f"the rope scaling in config.json has no {key}: {rope.kind} scaling needs it")
    return value


def _factors(rope: RopeKeys, key: str, n_rotated: int) -> tuple[float, ...]:
    values = getattr(rope, key)
    if values is None or len(values) != n_rotated // 2:
        raise ConfigError(
            f"the rope scaling in config.json has {0 if values is None else len(values)} numbers in {key}: "
            f"expected one for each of the {n_rotated // 2} pairs of dimensions"
        )
    return tuple(values)


def _yarn_attention_factor(rope: RopeKeys, factor: float) -> float:
    """0.1 ln(factor) + 1 (Peng et al. 2023, eq. 25), or DeepSeek's ratio of two such terms."""

    def term(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    if rope.mscale and rope.mscale_all_dim:
        return term(rope.mscale) / term(rope.mscale_all_dim)
    return term(1.0)


def _longrope_attention_factor(factor: float, original_length: int) -> float:
    """sqrt(1 + ln factor / ln original length) (Ding et al. 2024)."""
    return 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(max(original_length, 2)))
