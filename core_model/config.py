"""What a transformer is made of, as inert frozen records.

A `ModelConfig` holds one or two `StackConfig` (encoder and decoder, or towers of text and vision); a stack holds its
embedding, its absolute positions and one `LayerSpec` a layer, so any per-layer pattern is simply different records in
the tuple. Records check themselves when made and raise `ConfigError` naming the field, the value and the limit. Nothing
here knows torch, files, devices or seeds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from core_model.errors import ConfigError

Activation: TypeAlias = Literal["relu", "gelu", "gelu_tanh", "gelu_sigmoid", "silu", "tanh", "relu_squared", "identity"]
Pooling: TypeAlias = Literal["each", "first", "last", "mean", "first_two", "mean_patches", "first_and_mean_patches"]


def _require_counts(record: object, minimum: int, *names: str) -> None:
    """Raise ConfigError unless every named field of the record is a whole number of at least `minimum`."""
    for name in names:
        value = getattr(record, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ConfigError(f"{name} is {value!r}: it must be a whole number of at least {minimum}")


_LARGEST = 3.4028234663852886e38
"""The largest number of float32, in which is computed."""


def _require_positive(record: object, *names: str) -> None:
    """Raise ConfigError unless every named field of the record is a number above zero that float32 holds."""
    for name in names:
        value = getattr(record, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LARGEST:
            raise ConfigError(f"{name} is {value!r}: it must be a finite number above 0, at most {_LARGEST:.1e}")


def _given(record: object, *names: str) -> list[str]:
    """The names of those fields that are not None."""
    return [name for name in names if getattr(record, name) is not None]


def _require_rate(record: object, *names: str) -> None:
    """Raise ConfigError unless every named field is a dropout rate: at least 0 and below 1."""
    for name in names:
        value = getattr(record, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise ConfigError(f"{name} is {value!r}: a dropout rate must be at least 0 and below 1")


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
        _require_positive(self, "eps")


@dataclass(frozen=True, kw_only=True)
class SinusoidalPositions:
    """Fixed sines and cosines added to the embeddings (Vaswani et al. 2017, section 3.5); any width, odd too.

    `interleaved` puts sin and cos of one frequency side by side; `halves` all sines, then all cosines (Marian,
    fairseq). `endpoint` spaces the frequencies so that the last is exactly 1 / base (fairseq: M2M-100, XGLM).
    """

    layout: Literal["interleaved", "halves"] = "interleaved"
    base: float = 10000.0
    offset: int = 0
    endpoint: bool = False

    def __post_init__(self) -> None:
        _require_positive(self, "base")
        _require_counts(self, 0, "offset")


@dataclass(frozen=True, kw_only=True)
class LearnedPositions:
    """A trained vector for each position. Position i reads row i + offset of a table of max_length + offset rows."""

    max_length: int
    offset: int = 0

    def __post_init__(self) -> None:
        _require_counts(self, 1, "max_length")
        _require_counts(self, 0, "offset")


@dataclass(frozen=True, kw_only=True)
class RotaryScaling:
    """How rotary frequencies are stretched beyond the trained length.

    linear: positions / factor (Chen et al. 2023). dynamic: base grows with the length (NTK-aware). yarn: Peng et al.
    2023, eq. 23-25. llama3: Llama 3.1's three frequency bands. longrope: Ding et al. 2024, one factor a frequency.
    """

    kind: Literal["linear", "dynamic", "yarn", "llama3", "longrope"]
    factor: float = 1.0
    original_length: int = 0
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float = 1.0
    short_factors: tuple[float, ...] = ()
    long_factors: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _require_positive(self, "factor", "attention_factor")
        _require_counts(self, 0 if self.kind == "linear" else 1, "original_length")
        if self.kind == "llama3" and self.high_frequency_factor <= self.low_frequency_factor:
            raise ConfigError(
                f"high_frequency_factor is {self.high_frequency_factor}: "
                f"it must be above low_frequency_factor, {self.low_frequency_factor}"
            )


@dataclass(frozen=True, kw_only=True)
class RotaryPositions:
    """Queries and keys rotated by an angle that grows with the position (Su et al. 2021, eq. 15).

    The first `n_rotated` dimensions of a head turn. `halves` pairs dimension i with i + n_rotated/2 (Llama);
    `interleaved` pairs 2i with 2i + 1 (GPT-J, the paper). `frequencies`, in radians a position, one a pair, are used
    instead of those of `base` where a model was trained with other ones, such as rounded to float16 (ESM-2).
    """

    n_rotated: int
    base: float = 10000.0
    layout: Literal["halves", "interleaved"] = "halves"
    scaling: RotaryScaling | None = None
    frequencies: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _require_counts(self, 2, "n_rotated")
        _require_positive(self, "base")
        if self.n_rotated % 2:
            raise ConfigError(f"n_rotated is {self.n_rotated}: rotary positions turn pairs, so it must be even")
        if self.frequencies and (2 * len(self.frequencies) != self.n_rotated or self.scaling is not None):
            raise ConfigError(
                f"frequencies has {len(self.frequencies)} numbers: {self.n_rotated} rotated dimensions need "
                f"{self.n_rotated // 2}, and no scaling"
            )
        if self.scaling is not None:
            self._check_scaling(self.scaling)

    def _check_scaling(self, scaling: RotaryScaling) -> None:
        if scaling.kind == "dynamic" and self.n_rotated == 2:
            raise ConfigError(
                "n_rotated is 2: dynamic scaling changes the base, on which a single pair does not depend"
            )
        if scaling.kind == "yarn" and self.base == 1:
            raise ConfigError("base is 1: all pairs turn alike, so yarn cannot tell fast ones from slow ones")
        if scaling.kind == "longrope":
            for name in ("short_factors", "long_factors"):
                n_factors, n_pairs = len(getattr(scaling, name)), self.n_rotated // 2
                if n_factors != n_pairs:
                    raise ConfigError(f"{name} has {n_factors} entries: longrope needs one for each of {n_pairs} pairs")


@dataclass(frozen=True, kw_only=True)
class AlibiPositions:
    """A score penalty linear in distance (Press et al. 2022), one fixed slope a head, times `scale`.

    `rounded` computes slope times position in bfloat16, whatever the dtype of the model (Falcon).
    """

    max_bias: float = 8.0
    scale: float = 1.0
    rounded: bool = False

    def __post_init__(self) -> None:
        _require_positive(self, "max_bias", "scale")


@dataclass(frozen=True, kw_only=True)
class BucketedPositions:
    """A learned score bias for each bucket of relative distance (T5, Raffel et al. 2020, section 2.1).

    `from_layer` names the layer whose table is used; None means the layer has its own.
    """

    n_buckets: int = 32
    max_distance: int = 128
    bidirectional: bool = True
    from_layer: int | None = None

    def __post_init__(self) -> None:
        _require_counts(self, 4 if self.bidirectional else 2, "n_buckets")
        n_exact = self.n_buckets // (4 if self.bidirectional else 2)
        _require_counts(self, n_exact + 1, "max_distance")


@dataclass(frozen=True, kw_only=True)
class DisentangledPositions:
    """Scores that content and distance give each other, beside content's own (DeBERTa, He et al. 2021, eq. 4).

    The stack's `DistanceTable` has a row for each query position minus key position from -`span` to `span` - 1;
    farther ones share the outermost. With `max_distance`, distances from span / 2 on lie on a logarithmic scale that
    ends there (DeBERTa-v2). Each layer maps the rows to keys, which its queries meet (`content_to_position`), and to
    queries, which its keys meet (`position_to_content`): by the maps of its content where `shared_maps`, else by maps
    of their own, whose keys have a bias where `key_bias`. The attention's `scale` multiplies all terms.
    """

    span: int
    max_distance: int | None = None
    content_to_position: bool = True
    position_to_content: bool = True
    shared_maps: bool = False
    key_bias: bool = True

    def __post_init__(self) -> None:
        _require_counts(self, 1 if self.max_distance is None else 2, "span")
        if self.max_distance is not None:
            _require_counts(self, self.span // 2 + 2, "max_distance")


AbsolutePositions: TypeAlias = SinusoidalPositions | LearnedPositions
RelativePositions: TypeAlias = RotaryPositions | AlibiPositions | BucketedPositions | DisentangledPositions
PositionSpec: TypeAlias = AbsolutePositions | RelativePositions


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
        _require_counts(self, 0, "n_global", "n_prefix")
        if self.window is not None:
            _require_counts(self, 1, "window")

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
class QueryKeyNorm:
    """A normalisation of queries and keys before the scores.

    `over`: head - one gain vector [D] for all heads (Qwen3); heads - a gain for each head [H, D] (Cohere, StableLM);
    width - over the whole projection [H*D] before it is split (OLMo 2).
    """

    norm: NormSpec
    over: Literal["head", "heads", "width"] = "head"


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
        _require_counts(self, 1, "n_heads", "n_key_heads", "head_size")
        _require_positive(self, "scale", *_given(self, "soft_cap", "clip"))
        _require_rate(self, "dropout")
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
        _require_counts(self, 1, "n_experts", "n_active")
        _require_counts(self, 0, "d_shared")
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
        _require_counts(self, 0, "d_hidden")
        _require_rate(self, "dropout")
        if self.clip is not None:
            _require_positive(self, "clip")
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
        _require_positive(self, "scale")
        _require_rate(self, "dropout")


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
        if cross is not None and self.parallel:
            raise ConfigError("parallel is True: a layer with cross_attention runs its sublayers one after the other")


@dataclass(frozen=True, kw_only=True)
class ZeroedTokens:
    """Masking a token by a vector of zeros, as dropout of whole tokens (ESM-2, Lin et al. 2023).

    Where the id is `token` the token vector is 0. All others are multiplied by (1 - `trained_share`) over the share of
    other tokens in this input, so that as much goes in as in training, when `trained_share` of the tokens were masked.
    """

    token: int
    trained_share: float

    def __post_init__(self) -> None:
        _require_counts(self, 0, "token")
        _require_rate(self, "trained_share")


@dataclass(frozen=True, kw_only=True)
class TokenEmbedding:
    """Token ids to vectors: a table of `vocab_size` rows of `d_embedding`, projected to the model's width when they
    differ.

    Token vectors are multiplied by `scale` (the article: sqrt(d_model)), `n_types` rows of token types (BERT) and
    absolute positions are added, `norm` follows, then dropout. `projects` says what is projected: that sum at its end
    (ALBERT, ELECTRA), or the token vectors before anything is added to them (OPT 350M); `always_projects` where the
    widths are equal, too (ALBERT). `zeroed` are tokens that go in as zeros.
    """

    vocab_size: int
    d_embedding: int
    n_types: int = 0
    scale: float = 1.0
    norm: NormSpec | None = None
    projects: Literal["sum", "tokens"] = "sum"
    always_projects: bool = False
    projection_bias: bool = True
    zeroed: ZeroedTokens | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        _require_counts(self, 1, "vocab_size", "d_embedding")
        _require_counts(self, 0, "n_types")
        _require_positive(self, "scale")
        _require_rate(self, "dropout")


@dataclass(frozen=True, kw_only=True)
class VectorEmbedding:
    """The stack is given vectors of its own width (torch.nn.Transformer); absolute positions are added."""


@dataclass(frozen=True, kw_only=True)
class PatchEmbedding:
    """An image [channels, rows, columns] to vectors: one linear map of each square of pixels (Dosovitskiy et al. 2021).

    `n_class_tokens` learned vectors come first; then, once absolute positions are added, `n_registers` more that have
    none are put behind them (Darcet et al. 2024). `norm` follows, then dropout. Sizes are rows, columns of pixels.
    """

    image_size: tuple[int, int]
    patch_size: tuple[int, int]
    n_channels: int = 3
    n_class_tokens: int = 1
    n_registers: int = 0
    bias: bool = True
    norm: NormSpec | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        _require_counts(self, 1, "n_channels")
        _require_counts(self, 0, "n_class_tokens", "n_registers")
        _require_rate(self, "dropout")
        for name in ("image_size", "patch_size"):
            size = getattr(self, name)
            if len(size) != 2 or any(type(side) is not int or side < 1 for side in size):
                raise ConfigError(f"{name} is {size}: it must be two whole numbers of at least 1, rows and columns")
        if 0 in self.grid:
            raise ConfigError(f"patch_size is {self.patch_size}: an image of {self.image_size} holds no such patch")

    @property
    def grid(self) -> tuple[int, int]:
        """How many rows and columns of whole patches an image has."""
        return self.image_size[0] // self.patch_size[0], self.image_size[1] // self.patch_size[1]

    @property
    def n_positions(self) -> int:
        """Number of vectors with a position: class tokens and patches."""
        return self.n_class_tokens + self.grid[0] * self.grid[1]

    @property
    def n_tokens(self) -> int:
        """Number of vectors the layers read."""
        return self.n_positions + self.n_registers


@dataclass(frozen=True, kw_only=True)
class AudioEmbedding:
    """A spectrogram [n_features, frames] to vectors by two convolutions over time, an activation after each (Radford et
    al. 2022, section 2.2). The second takes steps of `stride`, so there is a vector every `stride` frames."""

    n_features: int
    kernel_size: int = 3
    stride: int = 2
    activation: Activation = "gelu"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        _require_counts(self, 1, "n_features", "kernel_size", "stride")
        _require_rate(self, "dropout")
        if self.kernel_size % 2 == 0:
            raise ConfigError(f"kernel_size is {self.kernel_size}: it must be odd, to look as far back as ahead")

    def n_tokens(self, n_frames: int) -> int:
        """Number of vectors of a spectrogram of n_frames."""
        return -(-n_frames // self.stride)


EmbeddingSpec: TypeAlias = TokenEmbedding | VectorEmbedding | PatchEmbedding | AudioEmbedding
_READS = {VectorEmbedding: "vectors", PatchEmbedding: "pixels", AudioEmbedding: "audio features"}


@dataclass(frozen=True, kw_only=True)
class DistanceTable:
    """Vectors of distances, as wide as the model, normed before any layer reads them; see DisentangledPositions."""

    n_rows: int
    norm: NormSpec | None = None

    def __post_init__(self) -> None:
        _require_counts(self, 2, "n_rows")


@dataclass(frozen=True, kw_only=True)
class ConvolutionSpec:
    """A convolution over neighbouring tokens beside the first layer: norm(layer(x) + activation(convolution(x))).

    (DeBERTa-v2.) Beyond the ends there are zeros.
    """

    kernel_size: int
    activation: Activation
    norm: NormSpec
    n_groups: int = 1

    def __post_init__(self) -> None:
        _require_counts(self, 1, "kernel_size", "n_groups")
        if self.kernel_size % 2 == 0:
            raise ConfigError(f"kernel_size is {self.kernel_size}: it must be odd, as many tokens before as after")


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    """One tower of layers: embedding, absolute positions, layers, final norm.

    `weights_of[i]` is the layer whose weights layer i uses (ALBERT runs one set many times); empty means each its own.
    """

    d_model: int
    embedding: EmbeddingSpec
    layers: tuple[LayerSpec, ...]
    position: AbsolutePositions | None = None
    final_norm: NormSpec | None = None
    weights_of: tuple[int, ...] = ()
    distances: DistanceTable | None = None
    convolution: ConvolutionSpec | None = None

    def __post_init__(self) -> None:
        _require_counts(self, 1, "d_model")
        if not self.layers:
            raise ConfigError("layers is empty: a stack needs at least one layer")
        self._check_shared_weights()
        self._check_shared_tables()
        self._check_distances()
        patches, n_rows = self.embedding, self.max_length
        if isinstance(patches, PatchEmbedding) and n_rows is not None and n_rows != patches.n_positions:
            raise ConfigError(
                f"position.max_length is {n_rows}: class tokens and patches of one image take {patches.n_positions}"
            )

    def _check_shared_weights(self) -> None:
        owners = self.weights_of
        if owners and (
            len(owners) != self.n_layers or any(not 0 <= w <= i or owners[w] != w for i, w in enumerate(owners))
        ):
            raise ConfigError(
                f"weights_of is {owners}: it must name, for each of the {self.n_layers} layers, "
                "itself or an earlier one that has weights of its own"
            )
        for index, owner in enumerate(owners):
            if self.layers[index] != self.layers[owner]:
                raise ConfigError(f"weights_of[{index}] is {owner}: layers {index} and {owner} must then be the same")

    def _check_shared_tables(self) -> None:
        positions = [layer.attention.position for layer in self.layers]
        for index, position in enumerate(positions):
            if not isinstance(position, BucketedPositions) or position.from_layer is None:
                continue
            owners = [i for i, other in enumerate(positions) if other == replace(position, from_layer=None)]
            if position.from_layer not in owners:
                raise ConfigError(
                    f"from_layer of layer {index} is {position.from_layer}: "
                    f"it must name a layer with a table of the same buckets, one of {owners}"
                )

    def _check_distances(self) -> None:
        positions = [layer.attention.position for layer in self.layers]
        spans = {position.span for position in positions if isinstance(position, DisentangledPositions)}
        n_rows = self.distances.n_rows if self.distances else 0
        if spans and spans != {n_rows / 2}:
            raise ConfigError(
                f"distances has {n_rows} rows: attention with distances up to {sorted(spans)} reads twice as many"
            )
        if self.convolution is not None and self.d_model % self.convolution.n_groups:
            raise ConfigError(f"n_groups is {self.convolution.n_groups}: it must divide d_model, {self.d_model}")

    @property
    def n_layers(self) -> int:
        """Number of layers, each counted as often as it runs."""
        return len(self.layers)

    @property
    def has_projection(self) -> bool:
        """Whether a linear map takes the token embedding to the model's width."""
        tokens = self.embedding
        return isinstance(tokens, TokenEmbedding) and (tokens.always_projects or tokens.d_embedding != self.d_model)

    @property
    def d_position(self) -> int:
        """Width of the absolute positions and token types, and of their sum with the token vectors."""
        tokens = self.embedding
        if isinstance(tokens, TokenEmbedding) and tokens.projects == "sum":
            return tokens.d_embedding
        return self.d_model

    @property
    def tokens(self) -> TokenEmbedding:
        """The token embedding; ConfigError where the stack reads something else."""
        if not isinstance(self.embedding, TokenEmbedding):
            raise ConfigError(f"the model reads {_READS[type(self.embedding)]}: it has no token ids")
        return self.embedding

    def weights_index(self, layer: int) -> int:
        """The layer whose weights this layer uses."""
        return self.weights_of[layer] if self.weights_of else layer

    @property
    def max_length(self) -> int | None:
        """The longest input its positions can name; None where there is no such limit."""
        return self.position.max_length if isinstance(self.position, LearnedPositions) else None


@dataclass(frozen=True, kw_only=True)
class HeadTransform:
    """A linear map, an activation and a norm before the output head (BERT's masked-token head, its pooler)."""

    d_output: int
    activation: Activation
    norm: NormSpec | None = None
    bias: bool = True


@dataclass(frozen=True, kw_only=True)
class HeadSpec:
    """What turns the last hidden states into logits: `pooling` picks the positions, then transform, then a linear map.

    "first_two" (DeiT's two class tokens) and "first_and_mean_patches" (DINOv2) put two vectors side by side. `norm` is
    of what was picked. `tied` uses the token embedding as the linear map's weight. `scale` multiplies and `soft_cap`
    bounds the logits. The one output of "replaced_tokens" (ELECTRA's discriminator) is a logit a position, [N] and not
    [N, 1].
    """

    n_outputs: int
    task: Literal[
        "language_model",
        "masked_language_model",
        "replaced_tokens",
        "sequence_classes",
        "token_classes",
        "answer_span",
        "image_classes",
    ]
    pooling: Pooling = "each"
    tied: bool = False
    bias: bool = False
    norm: NormSpec | None = None
    transform: HeadTransform | None = None
    scale: float = 1.0
    soft_cap: float | None = None
    labels: tuple[str, ...] = ()

    @property
    def n_pooled(self) -> int:
        """How many vectors of the model's width it reads side by side."""
        return 2 if self.pooling in ("first_two", "first_and_mean_patches") else 1

    def __post_init__(self) -> None:
        _require_counts(self, 1, "n_outputs")
        if self.task == "replaced_tokens" and self.n_outputs != 1:
            raise ConfigError(f"n_outputs is {self.n_outputs}: whether a token was replaced is one logit")
        _require_positive(self, "scale", *_given(self, "soft_cap"))


@dataclass(frozen=True, kw_only=True)
class SpecialTokens:
    """Ids with a role; None where the model has none."""

    begin: int | None = None
    end: int | None = None
    padding: int | None = None
    decoder_start: int | None = None


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A whole model: encoder, decoder or both, and its output head (None: hidden states only).

    `shared_embedding` makes the decoder read the encoder's token table. Instead of them a model may have two towers
    that do not read each other, `text` and `vision` (CLIP, Radford et al. 2021), or one of the two.
    """

    encoder: StackConfig | None = None
    decoder: StackConfig | None = None
    head: HeadSpec | None = None
    shared_embedding: bool = False
    special: SpecialTokens = SpecialTokens()
    text: StackConfig | None = None
    vision: StackConfig | None = None

    def __post_init__(self) -> None:
        if not self.stacks:
            raise ConfigError("the model has neither an encoder nor a decoder: give at least one")
        if self.has_towers and (self.encoder or self.decoder):
            raise ConfigError("the model has a tower (text, vision) beside an encoder or a decoder: leave one kind out")
        crosses = self.decoder is not None and any(layer.cross_attention for layer in self.decoder.layers)
        if self.encoder and self.decoder and not crosses:
            raise ConfigError("the decoder has no cross_attention: with an encoder, at least one layer must read it")
        if crosses and self.encoder is None:
            raise ConfigError("the decoder has cross_attention, but there is no encoder for it to read")
        for name in ("encoder", "text", "vision"):
            if name in self.stacks and any(layer.cross_attention for layer in self.stacks[name].layers):
                raise ConfigError(f"the {name} has cross_attention: only a decoder reads an encoder")
        if self.encoder and self.decoder and self.shared_embedding:
            sizes = [(s.tokens.vocab_size, s.tokens.d_embedding) for s in (self.encoder, self.decoder)]
            if sizes[0] != sizes[1]:
                raise ConfigError(f"shared_embedding is True: the token tables must then be one size, not {sizes}")
        if self.head and self.head.tied:
            self._check_tied(self.head)

    def _check_tied(self, head: HeadSpec) -> None:
        table = self.output_stack.tokens
        if head.n_outputs != table.vocab_size:
            raise ConfigError(
                f"head.n_outputs is {head.n_outputs}: a tied head has one output a token, {table.vocab_size}"
            )
        width = head.transform.d_output if head.transform else self.output_stack.d_model
        if width != table.d_embedding:
            raise ConfigError(
                f"head.tied is True: its input is {width} wide, but token vectors are {table.d_embedding} wide"
            )

    @property
    def stacks(self) -> dict[str, StackConfig]:
        """The stacks there are, by name, in the order they run."""
        named = {"encoder": self.encoder, "decoder": self.decoder, "text": self.text, "vision": self.vision}
        return {name: stack for name, stack in named.items() if stack is not None}

    @property
    def output_name(self) -> str:
        """The name of the stack whose hidden states are the model's output; of two towers the text's."""
        return next(name for name in ("decoder", "encoder", "text", "vision") if name in self.stacks)

    @property
    def output_stack(self) -> StackConfig:
        """The stack whose hidden states are the model's output."""
        return self.stacks[self.output_name]

    @property
    def has_towers(self) -> bool:
        """Whether the stacks are towers that do not read each other."""
        return self.text is not None or self.vision is not None

    def attention_layers(self) -> dict[str, tuple[AttentionSpec, ...]]:
        """Attention of every layer by site: encoder.self, decoder.self, decoder.cross, text.self, vision.self."""
        sites = {
            f"{name}.self": tuple(layer.attention for layer in stack.layers) for name, stack in self.stacks.items()
        }
        if self.encoder and self.decoder:
            cross = tuple(layer.cross_attention for layer in self.decoder.layers if layer.cross_attention)
            sites["decoder.cross"] = cross
        return sites
