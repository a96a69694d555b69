"""A tensor, or a rectangle of it, as at most a screen's pixels: exact cells, or blocks of cells made one.

Rows and columns are those of `pieces.as_matrix`. Blocks of rows are read, pooled and dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from core_model.cancel import CancelToken, Progress
from core_model.pieces import Numbers, PiecewiseArray, as_matrix, read_block
from core_model.results import Pooling, TensorView, read_only

_CELLS = 1 << 17
"""Cells pooled at once: 1 MiB of float64, and no more than eight times that of cells beside them."""
Span = tuple[int, int]


def tensor_view(
    tensor: PiecewiseArray,
    *,
    rows: Span | None = None,
    cols: Span | None = None,
    size: tuple[int, int],
    pooling: Pooling = "extreme",
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> TensorView | None:
    """The rows and columns (None: all), at most size[0] x size[1] pixels; None for a tensor without elements.

    A pixel stands for ceil(n / size) cells down and across, the last one for what is left; its value is the mean of the
    finite numbers there, or the one farthest from 0 with its sign ("extreme").
    Raises Cancelled between blocks.
    """
    shape = as_matrix(tensor.shape)
    rows, cols = rows or (0, shape[0]), cols or (0, shape[1])
    n_rows, n_cols = rows[1] - rows[0], cols[1] - cols[0]
    if n_rows * n_cols == 0:
        return None
    down, across = -(-n_rows // size[0]), -(-n_cols // size[1])
    canvas = _Canvas((-(-n_rows // down), -(-n_cols // across)), pooling)
    done = 0
    for some_rows, some_cols in _blocks(n_rows, n_cols):
        if cancel is not None:
            cancel.check()
        values = read_block(tensor, _moved(some_rows, rows[0]), _moved(some_cols, cols[0]))
        canvas.add(values, _pixels(some_rows, down), _pixels(some_cols, across))
        done += values.size
        if progress is not None:
            progress(done / (n_rows * n_cols))
    with np.errstate(over="ignore"):  # what float32 cannot hold is shown as missing
        values = canvas.pooled().astype(np.float32)
    missing = ~np.isfinite(values)
    return TensorView(
        shape=shape,
        rows=rows,
        cols=cols,
        values=read_only(np.where(missing, np.float32(0), values)),
        missing=read_only(missing),
        cells=(down, across),
        pooling=pooling,
    )


class _Canvas:
    """Pixels [Y, X] and the two numbers kept of each one's finite cells: sum and count, or largest and smallest."""

    def __init__(self, n: tuple[int, int], pooling: Pooling) -> None:
        self._pooling = pooling
        if pooling == "mean":
            self._first, self._second = _Layer(np.add, 0.0, n), _Layer(np.add, 0.0, n)
        else:
            self._first, self._second = _Layer(np.maximum, -np.inf, n), _Layer(np.minimum, np.inf, n)

    def add(self, values: Numbers, y: Numbers, x: Numbers) -> None:
        """Cells [N, M] under pixel rows y [N] and pixel columns x [M], which do not decrease."""
        is_finite = np.isfinite(values)
        self._first.add(values, is_finite, y, x)
        self._second.add(np.ones(()) if self._pooling == "mean" else values, is_finite, y, x)

    def pooled(self) -> Numbers:
        """NaN where no cell is finite."""
        first, second = self._first.pixels, self._second.pixels
        if self._pooling == "mean":
            return first / np.where(second > 0, second, np.nan)
        return np.where(first == -np.inf, np.nan, np.where(first >= -second, first, second))


class _Layer:
    """One number a pixel [Y, X], combined from its cells; `nothing` is what a cell without a number adds."""

    def __init__(self, combine: np.ufunc, nothing: float, n: tuple[int, int]) -> None:
        self.pixels = np.full(n, nothing)
        self._combine, self._nothing = combine, nothing

    def add(self, values: Numbers, is_finite: Numbers, y: Numbers, x: Numbers) -> None:
        cells = np.where(is_finite, values, self._nothing)
        for axis, pixels in ((1, x), (0, y)):
            cells = self._combine.reduceat(cells, _starts(pixels), axis=axis)
        place = np.ix_(y[_starts(y)], x[_starts(x)])
        self.pixels[place] = self._combine(self.pixels[place], cells)


def _blocks(n_rows: int, n_cols: int) -> Iterator[tuple[slice, slice]]:
    """Whole rows, or parts of one that is very long."""
    height, width = max(1, _CELLS // n_cols), min(n_cols, _CELLS)
    for top in range(0, n_rows, height):
        for left in range(0, n_cols, width):
            yield slice(top, min(top + height, n_rows)), slice(left, min(left + width, n_cols))


def _moved(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)


def _pixels(part: slice, per_pixel: int) -> Numbers:
    """The pixel over each cell."""
    return np.arange(part.start, part.stop) // per_pixel


def _starts(pixels: Numbers) -> Numbers:
    """Where a new pixel begins."""
    return np.flatnonzero(np.diff(pixels, prepend=-1))
