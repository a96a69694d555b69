"""Which normalisation, of what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core_model.config.checks import require_choices, require_positive


@dataclass(frozen=True, kw_only=True)
class NormSpec:
    """Normalisation over the last axis: LayerNorm (Ba et al. 2016) or RMSNorm (Zhang and Sennrich 2019).

    `unit_offset` multiplies by 1 + weight instead of weight (Gemma). `weight=False` normalises without a learned gain.
    """

    kind: Literal["layer", "rms"] = "layer"
    eps: float = 1e-5
    weight: bool = True
    bias: bool = True
    unit_offset: bool = False

    def __post_init__(self) -> None:
        require_choices(self)
        require_positive(self, "eps")


@dataclass(frozen=True, kw_only=True)
class QueryKeyNorm:
    """A normalisation of queries and keys before the scores.

    `over`: head - one gain vector [D] for all heads (Qwen3); heads - a gain for each head [H, D] (Cohere, StableLM);
    width - over the whole projection [H*D] before it is split (OLMo 2).
    """

    norm: NormSpec
    over: Literal["head", "heads", "width"] = "head"

    def __post_init__(self) -> None:
        require_choices(self)
