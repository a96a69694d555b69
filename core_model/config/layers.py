"""The parts of one layer, and how they join the residual stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from core_model.config.attention import AttentionSpec, MaskSpec
from core_model.config.checks import require_choices, require_counts, require_positive, require_rate
from core_model.config.norms import NormSpec
from core_model.errors import ConfigError

Activation: TypeAlias = Literal["relu", "gelu", "gelu_tanh", "gelu_sigmoid", "silu", "tanh", "relu_squared", "identity"]


@dataclass(frozen=True, kw_only=True)
class ExpertsSpec:
    """A mixture of experts: each token goes through its `n_active` best-scored feed-forward networks of `n_experts`.

    `renormalize` makes the chosen experts' softmax weights sum to 1. `d_shared` is the width of an expert that every
    token takes, gated by a sigmoid (Qwen2-MoE); 0 means none.
    """

    n_experts: int
    n_active: int
    renormalize: bool = True
    d_shared: int = 0
    router_bias: bool = False

    def __post_init__(self) -> None:
        require_counts(self, 1, "n_experts", "n_active")
        require_counts(self, 0, "d_shared")
        if self.n_active > self.n_experts:
            raise ConfigError(f"n_active is {self.n_active}: there are only {self.n_experts} experts")


@dataclass(frozen=True, kw_only=True)
class FeedForwardSpec:
    """Two linear maps around an activation, applied to each position; `gated` multiplies by a third (Shazeer 2020).

    Of a gated one, `clip` bounds the gate from above and what it multiplies from both sides, and `unit_offset`
    multiplies by 1 + input(x) (gpt-oss). A `d_hidden` of 0 means that the layer has none (a lone attention).
    """

    d_hidden: int
    activation: Activation = "relu"
    gated: bool = False
    clip: float | None = None
    unit_offset: bool = False
    bias: bool = True
    output_bias: bool | None = None
    dropout: float = 0.0
    experts: ExpertsSpec | None = None

    def __post_init__(self) -> None:
        require_choices(self)
        require_counts(self, 0, "d_hidden")
        require_rate(self, "dropout")
        if self.clip is not None:
            require_positive(self, "clip")
        if not self.gated and (self.clip is not None or self.unit_offset):
            raise ConfigError(f"clip is {self.clip} and unit_offset is {self.unit_offset}: only a gated one has them")

    @property
    def has_output_bias(self) -> bool:
        """Whether the second linear map has a bias: as the first, unless said otherwise."""
        return self.bias if self.output_bias is None else self.output_bias


@dataclass(frozen=True, kw_only=True)
class ResidualSpec:
    """How a sublayer f joins the residual stream x: total(x + scale * after(f(before(x)))).

    pre-norm has `before`, post-norm (the article) `total`, sandwich `before` and `after`. With `learned_scale` what f
    gives is also multiplied by a learned factor a dimension (LayerScale, Touvron et al. 2021). Without `skip` it is not
    added to x but takes its place.
    """

    before: NormSpec | None = None
    after: NormSpec | None = None
    total: NormSpec | None = None
    scale: float = 1.0
    learned_scale: bool = False
    skip: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self, "scale")
        require_rate(self, "dropout")


@dataclass(frozen=True, kw_only=True)
class LayerSpec:
    """One transformer layer: self-attention, cross-attention in a decoder that reads an encoder, feed-forward.

    `parallel` adds attention and feed-forward of the same input in one step (GPT-J); `shared_norm` gives both the
    attention's `before` norm.
    """

    attention: AttentionSpec
    attention_residual: ResidualSpec
    feed_forward: FeedForwardSpec
    feed_forward_residual: ResidualSpec
    cross_attention: AttentionSpec | None = None
    cross_residual: ResidualSpec = ResidualSpec()
    parallel: bool = False
    shared_norm: bool = False

    def __post_init__(self) -> None:
        cross = self.cross_attention
        if cross is not None and (cross.position is not None or cross.mask != MaskSpec()):
            raise ConfigError(
                f"cross_attention has the mask {cross.mask.label!r} and the position {cross.position}: "
                "places in two different texts cannot be compared, so leave both out"
            )
        if self.parallel and (self.attention_residual.total is not None or not self.attention_residual.skip):
            raise ConfigError(
                "parallel is True: attention and feed-forward are added in one step, so attention_residual can have no "
                "total norm of its own and must skip"
            )
        if cross is not None and self.parallel:
            raise ConfigError("parallel is True: a layer with cross_attention runs its sublayers one after the other")
