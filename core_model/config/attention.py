"""Who may see whom, and how attention scores are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core_model.config.checks import given, require_choices, require_counts, require_positive, require_rate
from core_model.config.norms import QueryKeyNorm
from core_model.config.positions import AlibiPositions, DisentangledPositions, RelativePositions, RotaryPositions
from core_model.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class MaskSpec:
    """Which keys a query may see: a predicate of (query position, key position), see `core_model.nn.masks`.

    `window` keeps keys at distance below `window` (causal: i - j < window; symmetric: |i - j| <= window). The first
    `n_global` tokens see all and are seen by all (within causality); the first `n_prefix` keys are seen by all.
    """

    causal: bool = False
    window: int | None = None
    n_global: int = 0
    n_prefix: int = 0

    def __post_init__(self) -> None:
        require_counts(self, 0, "n_global", "n_prefix")
        if self.window is not None:
            require_counts(self, 1, "window")

    @property
    def label(self) -> str:
        """The mask in the field's words, as shown on the model card."""
        parts = ["causal" if self.causal else "full" if self.window is None else "symmetric"]
        if self.window is not None:
            parts.append(f"window {self.window}")
        if self.n_global:
            parts.append(f"{self.n_global} global")
        if self.n_prefix:
            parts.append(f"prefix {self.n_prefix}")
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class AttentionSpec:
    """Scaled dot-product attention of `n_heads` query heads over `n_key_heads` key and value heads.

    `scale` multiplies query-key products; `soft_cap` c turns a score s into c tanh(s / c) (Gemma 2); `sinks` adds one
    learned score a head to the softmax denominator, so rows sum to less than 1 (gpt-oss). `normalizer` relu divides
    relu(score) by the number of visible keys (Wortsman et al. 2023). `clip` bounds queries, keys and values after
    their projections.
    """

    n_heads: int
    n_key_heads: int
    head_size: int
    scale: float
    mask: MaskSpec = MaskSpec()
    position: RelativePositions | None = None
    query_bias: bool = True
    key_bias: bool = True
    value_bias: bool = True
    output_bias: bool = True
    query_key_norm: QueryKeyNorm | None = None
    soft_cap: float | None = None
    clip: float | None = None
    sinks: bool = False
    normalizer: Literal["softmax", "relu"] = "softmax"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        require_choices(self)
        require_counts(self, 1, "n_heads", "n_key_heads", "head_size")
        require_positive(self, "scale", *given(self, "soft_cap", "clip"))
        require_rate(self, "dropout")
        if self.sinks and self.normalizer != "softmax":
            raise ConfigError(
                f"sinks is True: a sink is one more score of a softmax, but normalizer is {self.normalizer!r}"
            )
        if self.n_heads % self.n_key_heads:
            raise ConfigError(
                f"n_heads is {self.n_heads} and n_key_heads is {self.n_key_heads}: "
                "the first must be a multiple of the second, so that all key heads serve equally many query heads"
            )
        if isinstance(self.position, RotaryPositions) and self.position.n_rotated > self.head_size:
            raise ConfigError(f"n_rotated is {self.position.n_rotated}: a head has only {self.head_size} dimensions")
        if isinstance(self.position, DisentangledPositions) and self.n_heads != self.n_key_heads:
            raise ConfigError(f"n_key_heads is {self.n_key_heads}: with distances it must be n_heads, {self.n_heads}")
        if isinstance(self.position, AlibiPositions) and self.position.rounded and not self.mask.causal:
            raise ConfigError("position.rounded is true: ALiBi in bfloat16 is defined for a causal mask only")

    @property
    def d_query(self) -> int:
        """Width of all query heads together."""
        return self.n_heads * self.head_size

    @property
    def d_key(self) -> int:
        """Width of all key heads together; values are as wide."""
        return self.n_key_heads * self.head_size


def multi_head(d_model: int, n_heads: int, *, mask: MaskSpec = MaskSpec(), **options: object) -> AttentionSpec:
    """The attention of the article: n_heads heads of size d_model / n_heads, scores scaled by 1 / sqrt(head size)."""
    if d_model < 1 or n_heads < 1 or d_model % n_heads:
        raise ConfigError(f"d_model is {d_model} and n_heads is {n_heads}: d_model must be a multiple of n_heads")
    head_size = d_model // n_heads
    settings = {"n_key_heads": n_heads, "head_size": head_size, "scale": head_size**-0.5, **options}
    return AttentionSpec(n_heads=n_heads, mask=mask, **settings)  # pyright: ignore[reportArgumentType]
