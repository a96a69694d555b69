"""What the plots draw: frozen numpy records that a view function makes and a plot shows, with no Qt between.

Rows are queries and run downward with row 0 at the top; columns are keys and run to the right.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core_model.results import Pooling, Reduce

FloatArray = NDArray[np.float32] | NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Span = tuple[int, int]
"""First index and one past the last."""
Range = tuple[float, float]
"""Start and end on an axis, in cells."""

COLORMAPS: Final = ("viridis", "cividis", "magma", "grey", "diverging")
"""Names that plots and figures know. The first is the default; "diverging" has its middle at zero."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HeatmapPicture:
    """A matrix, or one pooled or exact rectangle of it, ready to be coloured.

    `rows` and `cols` say which part of the whole matrix `values` cover, in tokens, so that a pooled overview of 100 000
    tokens and an exact tile of 40 share one axis. Three kinds of cell that are not a number on the colour scale: masked
    (hatched), not computed (dotted), and outside the picture (bare).
    """

    values: FloatArray
    """[r, c], already in the drawn scale (for a log scale: the logarithm)."""
    shape: tuple[int, int]
    """Size of the whole matrix in tokens: (n_query, n_key)."""
    rows: Span
    cols: Span
    cells: tuple[int, int] = (1, 1)
    """How many cells of the matrix a value spans, down and across; the last of an axis spans what is left."""
    reduce: Reduce | Pooling = "max"
    """How a value stands for several cells."""
    levels: tuple[float, float]
    """Values of the two ends of the colour map."""
    title: str
    """What is shown, for example "Attention weights, layer 1 head 2"."""
    scale_name: str
    """Printed at the colour bar, for example "attention weight, linear"."""
    note: str = ""
    """What a reader must know to read it rightly, for example "maximum of 8 x 8 cells"."""
    ticks: tuple[tuple[float, str], ...] = ()
    """Colour bar ticks as (value in the drawn scale, text). Empty: round numbers are chosen."""
    colormap: str = "viridis"
    masked: BoolArray | None = None
    """[r, c], True where the model may not look."""
    missing: BoolArray | None = None
    """[r, c], True where the value was not computed, or is left out."""
    missing_name: str = "not computed"
    """What the missing cells are called beside the picture."""
    weights: FloatArray | None = None
    """[r, c] before the scale, to be read out cell by cell."""
    row_labels: tuple[str, ...] = ()
    """One text for each of the shape[0] rows (tokens as decoded, spaces included, or a Name). Empty:
    indices."""
    col_labels: tuple[str, ...] = ()
    row_first: int = 0
    """Number of the first row, where rows are numbered: -127 on an axis of distances."""
    col_first: int = 0
    row_title: str = "query (row)"
    col_title: str = "key (column)"
    row_role: str = "query"
    """Theme colour of the row title and of the marked row."""
    col_role: str = "key"
    given: FloatArray | None = None
    """[r] bars at the right edge, one a row of `values`."""
    received: FloatArray | None = None
    """[c] bars at the lower edge, one a column of `values`."""
    given_title: str = "given"
    received_title: str = "received"
    square_cells: bool = True
    axes: tuple[Hashable, Hashable] | None = None
    """What rows and columns stand for: equal for pictures of the same queries and keys."""
    identity: Hashable = None
    """What is shown, apart from which part of it. A part with the identity and levels of the whole picture on screen is
    laid over it; anything else replaces it."""

    def __post_init__(self) -> None:
        assert self.values.ndim == 2, self.values.shape
        for name in ("masked", "missing", "weights"):
            cells: BoolArray | FloatArray | None = getattr(self, name)
            assert cells is None or cells.shape == self.values.shape, (name, self.values.shape)
        for axis, (start, stop) in enumerate((self.rows, self.cols)):
            assert 0 <= start < stop <= self.shape[axis], (self.rows, self.cols, self.shape)
            assert self.values.shape[axis] == -(-(stop - start) // self.cells[axis]), (self.values.shape, self.cells)
        assert len(self.row_labels) in (0, self.shape[0]), (len(self.row_labels), self.shape)
        assert len(self.col_labels) in (0, self.shape[1]), (len(self.col_labels), self.shape)
        assert self.given is None or self.given.shape == self.values.shape[:1]
        assert self.received is None or self.received.shape == self.values.shape[1:]

    @property
    def is_whole(self) -> bool:
        return self.rows == (0, self.shape[0]) and self.cols == (0, self.shape[1])

    @property
    def is_exact(self) -> bool:
        """Every value stands for one cell of the matrix, none for several."""
        return self.cells == (1, 1)

    def reach(self, pixel: tuple[float, float] = (0.0, 0.0)) -> tuple[Range, Range]:
        """Rows and columns that the values would cover, were the last ones as long as the others.

        Where less than a `pixel` (in cells) is left for the last ones, all are a little shorter, so that they are seen.
        """
        return (
            reach_of(self.rows, self.values.shape[0], self.cells[0], pixel[0]),
            reach_of(self.cols, self.values.shape[1], self.cells[1], pixel[1]),
        )

    def index_of(self, row: int, col: int) -> tuple[int, int] | None:
        """Indices into `values` of the value that covers token `row` and token `col`; None when outside the picture."""
        if not (self.rows[0] <= row < self.rows[1] and self.cols[0] <= col < self.cols[1]):
            return None
        return (row - self.rows[0]) // self.cells[0], (col - self.cols[0]) // self.cells[1]


def reach_of(span: Span, n_values: int, n_cells: int, pixel: float) -> Range:
    """`HeatmapPicture.reach` along one axis, whose values span `n_cells` each."""
    start, stop = span
    length = n_cells if n_values == 1 else min(n_cells, (stop - start - pixel) / (n_values - 1))
    return start, start + n_values * length


@dataclass(frozen=True, kw_only=True, eq=False)
class MosaicPicture:
    """Every head of a site at once, as small pictures on one colour scale."""

    thumbnails: FloatArray
    """[n_layers, n_heads, y, x]; NaN where masked. Of cross-attention the two sides differ."""
    levels: tuple[float, float]
    title: str
    note: str = ""
    """The colour scale and how the pictures were made small, for example "0 to 1, maximum of 8 x 8 cells"."""
    colormap: str = "viridis"
    head_values: FloatArray | None = None
    """[n_layers, n_heads] drawn as a bar below each head, from 0 to the largest; NaN: no bar."""
    value_name: str = ""
    """Name and unit of `head_values`, for example "entropy (nat)"."""

    def __post_init__(self) -> None:
        assert self.thumbnails.ndim == 4, self.thumbnails.shape
        assert self.head_values is None or self.head_values.shape == self.thumbnails.shape[:2]


@dataclass(frozen=True, kw_only=True, eq=False)
class PatchPicture:
    """A picture and a number over each of its patches."""

    image: NDArray[np.uint8]
    """[Y, X, 3] of 0 to 255, all of it patches."""
    values: FloatArray
    """[r, c] in the drawn scale, one a patch."""
    weights: FloatArray
    """[r, c] before the scale."""
    levels: tuple[float, float]
    ends: tuple[str, str]
    """The two levels in words."""
    query: int
    """Index of the token whose row this is."""
    place: tuple[int, int] | None
    """Row and column of its own patch, None where it has none."""
    first: int
    """Index of the first patch among the tokens."""
    asks: bool
    """Whether its patches are queries too."""
    title: str
    note: str
    scale_name: str
    colormap: str = "viridis"

    def __post_init__(self) -> None:
        assert self.image.ndim == 3 and self.image.shape[2] == 3, self.image.shape
        assert self.values.ndim == 2 and self.weights.shape == self.values.shape, self.values.shape

    def place_of(self, index: int) -> tuple[int, int] | None:
        """Row and column of the patch of a token; None where that is no patch."""
        row, column = divmod(index - self.first, self.values.shape[1])
        return (row, column) if 0 <= row < self.values.shape[0] else None


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """One named curve. Where y is NaN the line has a gap."""

    name: str
    x: FloatArray
    """[n], not decreasing."""
    y: FloatArray
    """[n]"""
    role: str = "series_1"
    """Theme colour."""
    head: tuple[int, int] | None = None
    """(layer, head): the curve has that head's colour instead."""
    width: float = 1.5
    dashed: bool = False

    def __post_init__(self) -> None:
        assert self.x.ndim == 1 and self.x.shape == self.y.shape, (self.x.shape, self.y.shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class CurvePicture:
    """Curves that share both axes."""

    series: tuple[Series, ...]
    title: str
    x_title: str
    y_title: str
    x_unit: str = ""
    y_unit: str = ""
    log_y: bool = False
    marker: float | None = None
    """x of a vertical line, for example the current step."""
    marker_label: str = ""

    def __post_init__(self) -> None:
        names = [series.name for series in self.series]
        assert len(set(names)) == len(names), names
