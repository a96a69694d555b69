"""The one vector that a tower of text or vision makes of what it read, and how two of them are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core_model.config.attention import AttentionSpec
from core_model.config.checks import given, require_choices, require_counts
from core_model.config.layers import FeedForwardSpec
from core_model.config.norms import NormSpec
from core_model.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class AttentionPooling:
    """One learned query gathers y from all positions by attention; what comes of it is y + feed_forward(norm(y)).

    (SigLIP; Lee et al. 2019, "Set Transformer", section 3.2, without its first sum.)
    """

    attention: AttentionSpec
    norm: NormSpec
    feed_forward: FeedForwardSpec


@dataclass(frozen=True, kw_only=True)
class VectorSpec:
    """How a tower's last hidden states become one vector: `pooling`, then `norm`, then a linear map to `d_output`.

    Pooling "end" is the position of the end token: the first with the id `end_token` or, without one, the first of the
    highest id (the original CLIP); a text without it has no vector. "attention" is that of `attention`. Without
    `d_output` there is no map. Where `padded`, texts were padded in training to the longest the tower reads (SigLIP).
    """

    pooling: Literal["first", "last", "end", "attention"]
    end_token: int | None = None
    attention: AttentionPooling | None = None
    norm: NormSpec | None = None
    d_output: int | None = None
    bias: bool = False
    padded: bool = False

    def __post_init__(self) -> None:
        require_choices(self)
        require_counts(self, 1, *given(self, "d_output"))
        require_counts(self, 0, *given(self, "end_token"))
        if (self.pooling == "attention") != (self.attention is not None):
            raise ConfigError(
                f"pooling is {self.pooling!r}: attention must be given where it is 'attention', only there"
            )


@dataclass(frozen=True, kw_only=True)
class VectorsSpec:
    """The vectors of the towers there are. Where `compared`, a text t and an image v are as like as
    exp(scale) t.v / (|t||v|) + bias, both numbers learned (Radford et al. 2021, figure 3; Zhai et al. 2023, algorithm
    1), the second only where `bias`.
    """

    text: VectorSpec | None = None
    vision: VectorSpec | None = None
    compared: bool = False
    bias: bool = False

    def __post_init__(self) -> None:
        if not self.by_tower:
            raise ConfigError("vectors has none: give that of text, of vision, or both")
        if self.compared and len(self.by_tower) < 2:
            raise ConfigError("vectors.compared is True: that takes the vector of a text and that of an image")
        if self.bias and not self.compared:
            raise ConfigError("vectors.bias is True: it is of the comparison, but compared is False")

    @property
    def by_tower(self) -> dict[str, VectorSpec]:
        """Those there are, by the name of the tower."""
        named = {"text": self.text, "vision": self.vision}
        return {name: vector for name, vector in named.items() if vector is not None}
