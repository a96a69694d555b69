"""Frozen records that cross from workers to the screen: numpy arrays, read-only, no larger than a screen needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float32]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.int64]
ByteArray: TypeAlias = npt.NDArray[np.uint8]

Scalar = TypeVar("Scalar", bound=np.generic)

Origin: TypeAlias = Literal["stated", "inferred", "unknown"]
CONTEXT_LENGTH = "context length"
"""The fact of how long an input its config states."""
Reduce: TypeAlias = Literal["max", "mean", "sample"]
"""How a pixel stands for its block of cells: the largest weight, the mean, or the weight of the first cell."""


Pooling: TypeAlias = Literal["extreme", "mean"]
"""How a pixel stands for its block of a tensor: the number farthest from 0, with its sign, or the mean."""
Reads: TypeAlias = Literal["text", "pair", "target", "picture", "sound"]
"""What a person can give a model: text, a second text beside it, what a decoder is to write, a file of either kind."""
HeadPart: TypeAlias = Literal["query", "key", "value", "output", "qk", "ov"]
"""One of a head's four maps, or of its two circuits."""


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """The array, contiguous and locked against writing; a copy only where it had gaps."""
    packed = np.ascontiguousarray(array)
    packed.flags.writeable = False
    return packed


def rank_among(weights: FloatArray, weight: float) -> int | None:
    """The place of a weight among all of them, from 1, the largest; None of one that is not a number."""
    return None if np.isnan(weight) else 1 + int(np.count_nonzero(weights > weight))


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One fact about a checkpoint and where it comes from: its config, its shapes and names, or nowhere."""

    name: str
    value: str
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class TensorInfo:
    """One stored tensor, never its values. `file` holds it; `site` is our name for it, if it has one."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    n_bytes: int
    file: Path
    site: str | None = None


@dataclass(frozen=True, kw_only=True)
class SiteInfo:
    """One attention site of a model: how many layers and heads it has, and its mask in words."""

    site: str
    label: str
    n_layers: int
    n_heads: int
    n_key_heads: int
    mask: str


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """How far a training has come: `step` of `n_steps` updates.

    `text` and `target` are the example it was watched on, empty where it does not tell.
    """

    step: int
    n_steps: int
    text: str = ""
    target: str = ""

    @property
    def progress(self) -> str:
        """In words: "step 400 of 2000"."""
        return f"step {self.step} of {self.n_steps}"


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """What a checkpoint is, before its weights are loaded.

    `family` is None when it opens in the tensor browser only; `refusal` then says why attention is not offered.
    `missing`, `unexpected` and `misshaped` name tensors; any missing or misshaped one blocks the forward pass.
    `header_sha256` is of header and config, not of the weights. `needs` names the facts that no file states and that
    may be given to `open_checkpoint` where attention is not offered: "n_heads", or "base", the model of an adapter.
    `reads` is what `Checkpoint.encode` takes for it; nothing where only ids, vectors or nothing at all can be given.
    `run` is its training, where that was kept beside it.
    """

    name: str
    path: Path
    family: str | None
    architecture: str | None
    summary: str
    n_parameters: int
    n_bytes: int
    dtype: str
    max_length: int | None
    sites: tuple[SiteInfo, ...]
    facts: tuple[Fact, ...]
    tied: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    misshaped: tuple[str, ...]
    warnings: tuple[str, ...]
    refusal: str | None
    header_sha256: str
    needs: tuple[str, ...] = ()
    reads: tuple[Reads, ...] = ()
    run: RunInfo | None = None

    @property
    def input_length(self) -> str:
        """How long its input may be, in words; a length that is only stated keeps nothing from being computed."""
        if self.max_length is not None:
            return f"at most {self.max_length} tokens"
        stated = [fact.value for fact in self.facts if (fact.name, fact.origin) == (CONTEXT_LENGTH, "stated")]
        return f"of any length, stated for {stated[0]} tokens" if stated else "of any length"

    @property
    def inferred(self) -> tuple[Fact, ...]:
        """The facts that its config does not state."""
        return tuple(fact for fact in self.facts if fact.origin == "inferred")


@dataclass(frozen=True, kw_only=True)
class HeatmapView:
    """Part of one head's attention, at most a screen large: rows are queries, columns are keys.

    `values[r, c]` is the weight of one cell when `exact`, else the `reduce` of the block of cells under that pixel.
    `rows` and `cols` are the half-open ranges of tokens shown. `cells` says how many a pixel spans down and across; the
    last pixel of an axis spans what is left. `masked` is true where every cell of the block is
    masked: it has no weight, which is not the same as zero.
    """

    site: str
    layer: int
    head: int
    rows: tuple[int, int]
    cols: tuple[int, int]
    values: FloatArray
    masked: BoolArray
    cells: tuple[int, int]
    reduce: Reduce

    @property
    def exact(self) -> bool:
        """Whether every pixel is one cell."""
        return self.cells == (1, 1)

    @property
    def shape(self) -> tuple[int, int]:
        """Pixels down and across."""
        return self.values.shape[0], self.values.shape[1]


@dataclass(frozen=True, kw_only=True)
class CellFacts:
    """One cell of one head's attention: its weight, and the score before the normaliser.

    There is no score where the cell is masked, or where an edit replaced the pattern of the head.

    `rank` is `rank_among` those of the row. `row_entropy` is in nat, of the row's weights divided by their
    sum; None where they are all 0.
    """

    query: int
    key: int
    weight: float
    score: float | None
    rank: int | None
    masked: bool
    row_entropy: float | None


@dataclass(frozen=True, kw_only=True)
class HeadStatistics:
    """Numbers of every head of a site [layers, heads], NaN where one has no meaning; see analysis.head_statistics."""

    site: str
    entropy: FloatArray
    distance: FloatArray
    first_token: FloatArray
    diagonal: FloatArray
    previous_token: FloatArray
    same_token: FloatArray
    special_tokens: FloatArray

    @property
    def effective_span(self) -> FloatArray:
        """e^entropy: the number of keys a uniform row of this entropy would have."""
        return np.exp(self.entropy)


@dataclass(frozen=True, kw_only=True)
class Links:
    """The strongest cells of a head, largest first: weight, query and key [n] each."""

    weight: FloatArray
    query: IntArray
    key: IntArray


@dataclass(frozen=True, kw_only=True)
class TokenTotals:
    """Column sums [n_key] (attention received) and row sums [n_query] (attention given) of one head."""

    received: FloatArray
    given: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class PatchAttention:
    """The weights one query of a picture gives: to its patches [R, C], and to the vectors that stand `before` them [n].

    `place` is the row and the column of the query's own patch; None where it is one of those before.
    """

    query: int
    place: tuple[int, int] | None
    weights: FloatArray
    before: FloatArray


@dataclass(frozen=True, kw_only=True)
class LogitLens:
    """The likeliest outputs after each layer: ids and probabilities [layers, positions, n]."""

    ids: IntArray
    probabilities: FloatArray


@dataclass(frozen=True, kw_only=True)
class LogitAttribution:
    """The terms of one logit: heads [layers, heads], feed_forward [layers], embedding, biases; together the logit."""

    heads: FloatArray
    feed_forward: FloatArray
    embedding: float
    biases: float
    logit: float


@dataclass(frozen=True, kw_only=True, eq=False)
class PositionEncoding:
    """How one layer of a stack knows the order of its tokens.

    `table` [positions, dimensions] is what absolute positions add to each dimension of the embeddings, or the cosines
    and sines rotary positions turn queries and keys by; None without either. `dimensions` names its columns. `bias`
    [H, n] is what relative positions add to a score at each of `distances` [n], key position minus query position;
    None without; of a grid of patches, along one row. Disentangled positions have a `table` [n, dimensions]: the vector
    of each of `distances`.
    """

    stack: str
    layer: int
    kind: Literal["sinusoidal", "learned", "rotary", "alibi", "bucketed", "grid", "disentangled", "none"]
    table: FloatArray | None = None
    dimensions: tuple[str, ...] = ()
    bias: FloatArray | None = None
    distances: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorStatistics:
    """The numbers of a tensor in numbers. All but the counts are of its finite numbers, NaN where it has none.

    `std` is the spread of the numbers themselves, `norm` the square root of the sum of their squares. `counts` [bins]
    is their histogram between `edges` [bins + 1], float64; empty where there are none.
    """

    n_elements: int
    n_zero: int
    n_nan: int
    n_infinite: int
    minimum: float
    maximum: float
    mean: float
    std: float
    norm: float
    counts: IntArray
    edges: npt.NDArray[np.float64]

    @property
    def n_finite(self) -> int:
        """How many numbers are neither NaN nor infinite."""
        return self.n_elements - self.n_nan - self.n_infinite

    @property
    def share_zero(self) -> float:
        """Zeros among all elements; NaN without elements."""
        return self.n_zero / self.n_elements if self.n_elements else float("nan")


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorView:
    """Part of a tensor as a matrix, at most a screen large; `shape` is that of the whole matrix.

    `values[r, c]` is one number when `exact`, else the `pooling` of the numbers under that pixel. `cells` says how many
    a pixel spans down and across; the last pixel of an axis spans what is left. `missing` is true where none of them is
    finite.
    """

    shape: tuple[int, int]
    rows: tuple[int, int]
    cols: tuple[int, int]
    values: FloatArray
    missing: BoolArray
    cells: tuple[int, int]
    pooling: Pooling

    @property
    def exact(self) -> bool:
        """Whether every pixel is one number of the tensor."""
        return self.cells == (1, 1)
