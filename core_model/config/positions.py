"""How a model knows order: what is added to embeddings, what turns queries and keys, what is added to scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from core_model.config.checks import require_choices, require_counts, require_positive
from core_model.config.norms import NormSpec
from core_model.errors import ConfigError


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
        require_choices(self)
        require_positive(self, "base")
        require_counts(self, 0, "offset")


@dataclass(frozen=True, kw_only=True)
class LearnedPositions:
    """A trained vector for each position. Position i reads row i + offset of a table of max_length + offset rows."""

    max_length: int
    offset: int = 0

    def __post_init__(self) -> None:
        require_counts(self, 1, "max_length")
        require_counts(self, 0, "offset")


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
        require_choices(self)
        require_positive(self, "factor", "attention_factor")
        require_counts(self, 0 if self.kind == "linear" else 1, "original_length")
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
        require_choices(self)
        require_counts(self, 2, "n_rotated")
        require_positive(self, "base")
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
        require_positive(self, "max_bias", "scale")


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
        require_counts(self, 4 if self.bidirectional else 2, "n_buckets")
        n_exact = self.n_buckets // (4 if self.bidirectional else 2)
        require_counts(self, n_exact + 1, "max_distance")


@dataclass(frozen=True, kw_only=True)
class GridPositions:
    """A learned score bias for each step of rows and columns between two patches (BEiT, Bao et al. 2022).

    `grid` is how many rows and columns of patches there are, read row by row behind one class token. Where the class
    token is the query, the key, or both, one of three further biases takes its place. `from_layer` is as in
    BucketedPositions.
    """

    grid: tuple[int, int]
    from_layer: int | None = None

    def __post_init__(self) -> None:
        if len(self.grid) != 2 or any(type(side) is not int or side < 1 for side in self.grid):
            raise ConfigError(f"grid is {self.grid}: it must be two whole numbers of at least 1, rows and columns")

    @property
    def n_buckets(self) -> int:
        """Number of biases a head has: one a step, and three for the class token."""
        n_rows, n_columns = self.grid
        return (2 * n_rows - 1) * (2 * n_columns - 1) + 3


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
        require_counts(self, 1 if self.max_distance is None else 2, "span")
        if self.max_distance is not None:
            require_counts(self, self.span // 2 + 2, "max_distance")


AbsolutePositions: TypeAlias = SinusoidalPositions | LearnedPositions


TablePositions: TypeAlias = BucketedPositions | GridPositions
"""Score biases from a table [n_buckets, heads] that layers may share."""


RelativePositions: TypeAlias = RotaryPositions | AlibiPositions | TablePositions | DisentangledPositions


PositionSpec: TypeAlias = AbsolutePositions | RelativePositions


@dataclass(frozen=True, kw_only=True)
class DistanceTable:
    """Vectors of distances, as wide as the model, normed before any layer reads them; see DisentangledPositions."""

    n_rows: int
    norm: NormSpec | None = None

    def __post_init__(self) -> None:
        require_counts(self, 2, "n_rows")
