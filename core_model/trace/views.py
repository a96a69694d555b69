"""Part of one head's matrix, reduced to at most a screen's pixels: exact tiles, pooled overviews, thumbnails.

Blocks of rows and columns are computed, reduced and dropped; what is held grows with the picture, not with the length.
Shape letters: N rows and M columns of a block, Y and X pixels down and across.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from core_model.cancel import CancelToken, Progress
from core_model.errors import TraceError
from core_model.results import Reduce
from core_model.trace.scores import HeadScores

_BLOCK = 384
"""Rows and columns of a block: its 576 KiB of float32 stay in a core's cache through product and maximum."""
_PEAK_ROWS = 64
"""Whole rows of a sample held at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled:
    """weights [Y, X] in float32 (0 where masked), masked [Y, X], and how many cells a pixel spans down and across."""

    weights: torch.Tensor
    masked: torch.Tensor
    cells: tuple[int, int]


def pool(
    head: HeadScores,
    rows: slice,
    cols: slice,
    size: tuple[int, int],
    reduce: Reduce = "max",
    *,
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> Pooled:
    """The weights of rows x cols, each pixel the max or mean of ceil(n / size) cells, at most size[0] x size[1] pixels.

    "sample" takes the first cell of each: exact weights of some cells, at once at any length. Exact when a pixel
    is a cell. The last pixel of an axis spans what is left. Raises Cancelled between blocks.
    """
    n_rows, n_cols = rows.stop - rows.start, cols.stop - cols.start
    down, across = -(-n_rows // size[0]), -(-n_cols // size[1])
    if reduce == "sample":
        some_rows, some_cols = slice(rows.start, rows.stop, down), slice(cols.start, cols.stop, across)
        weights_YX = head.sample(some_rows, some_cols, cancel)
        return Pooled(weights=weights_YX, masked=head.masked(some_rows, some_cols), cells=(down, across))
    head.prepare(cancel)
    if down == across == 1:
        return Pooled(weights=head.weights(rows, cols), masked=head.masked(rows, cols), cells=(1, 1))
    canvas = _Canvas(head, rows, cols, (down, across), reduce)
    row_chunks = list(_chunks(n_rows, down))
    for done, (top, bottom) in enumerate(row_chunks, start=1):
        for left, right in _chunks(n_cols, across):
            if cancel is not None:
                cancel.check()
            canvas.add(top, bottom, left, right)
        if progress is not None:
            progress(done / len(row_chunks))
    return canvas.finish()


def row_peaks(
    head: HeadScores, rows: slice, n: int, reduce: Reduce = "max", *, cancel: CancelToken | None = None
) -> torch.Tensor:
    """The largest weight over all keys under each of n pixels down [n]: of every row there, or of the sampled one."""
    keys = slice(0, head.n_keys)
    if reduce != "sample":
        return pool(head, rows, keys, (n, 1), cancel=cancel).weights[:, 0]
    down = -(-(rows.stop - rows.start) // n)
    starts = range(rows.start, rows.stop, down * _PEAK_ROWS)
    blocks = [slice(start, min(start + down * _PEAK_ROWS, rows.stop), down) for start in starts]
    return torch.cat([head.sample(block, keys, cancel).amax(1) for block in blocks])


class _Canvas:
    """The picture so far. A block adds to the pixels it touches, so blocks may be smaller or larger than a pixel."""

    def __init__(self, head: HeadScores, rows: slice, cols: slice, cells: tuple[int, int], reduce: Reduce) -> None:
        self._head, self._rows, self._cols, self._cells, self._reduce = head, rows, cols, cells, reduce
        shape = -(-(rows.stop - rows.start) // cells[0]), -(-(cols.stop - cols.start) // cells[1])
        device = head.inputs.q_BHND.device
        self._best_YX = torch.full(shape, float("-inf"), device=device)
        self._sum_YX = torch.zeros(shape if reduce == "mean" else (0, 0), device=device)
        self._buffer = torch.empty(0, device=device)

    def add(self, top: int, bottom: int, left: int, right: int) -> None:
        """Compute and take in the block of rows top...bottom and columns left...right, counted from the corner."""
        rows = slice(self._rows.start + top, self._rows.start + bottom)
        cols = slice(self._cols.start + left, self._cols.start + right)
        if self._head.coverage(rows, cols) == "none":
            return
        n_rows, n_cols = bottom - top, right - left
        if self._buffer.numel() < n_rows * n_cols:
            self._buffer = torch.empty(n_rows * n_cols, device=self._buffer.device)
        e_NM = self._head.exponents(rows, cols, out=self._buffer[: n_rows * n_cols].view(n_rows, n_cols))
        down, across = self._cells
        pixels = slice(top // down, -(-bottom // down)), slice(left // across, -(-right // across))
        best_YX = _by_pixel(_by_pixel(e_NM, 0, down, float("-inf")).amax(1), 1, across, float("-inf")).amax(2)
        torch.maximum(self._best_YX[pixels], best_YX, out=self._best_YX[pixels])
        if self._reduce == "mean":
            weights_NM = self._head.to_weights(e_NM)
            sum_YX = _by_pixel(_by_pixel(weights_NM, 0, down, 0.0).sum(1), 1, across, 0.0).sum(2)
            self._sum_YX[pixels] += sum_YX

    def finish(self) -> Pooled:
        """The picture as weights."""
        masked_YX = self._best_YX == float("-inf")
        if self._reduce == "max":
            return Pooled(weights=self._head.to_weights(self._best_YX), masked=masked_YX, cells=self._cells)
        n_rows, n_cols = self._rows.stop - self._rows.start, self._cols.stop - self._cols.start
        (down, across), (n_down, n_across) = self._cells, self._sum_YX.shape
        height_Y = (n_rows - torch.arange(n_down, device=masked_YX.device) * down).clamp(max=down)
        width_X = (n_cols - torch.arange(n_across, device=masked_YX.device) * across).clamp(max=across)
        return Pooled(weights=self._sum_YX / (height_Y[:, None] * width_X), masked=masked_YX, cells=self._cells)


def _chunks(n: int, per_pixel: int) -> Iterator[tuple[int, int]]:
    """Ranges that cover 0...n, each either whole pixels or within one, at most about _BLOCK long."""
    if per_pixel <= _BLOCK:
        step = per_pixel * max(1, _BLOCK // per_pixel)
        yield from ((start, min(start + step, n)) for start in range(0, n, step))
        return
    for pixel in range(0, n, per_pixel):
        end = min(pixel + per_pixel, n)
        yield from ((start, min(start + _BLOCK, end)) for start in range(pixel, end, _BLOCK))


def _by_pixel(x: torch.Tensor, axis: int, per_pixel: int, neutral: float) -> torch.Tensor:
    """The axis split into (pixels, cells of a pixel); a part of a pixel is filled up with a neutral value."""
    n = x.shape[axis]
    cells = min(n, per_pixel)
    missing = -n % cells
    if missing:
        padding = (0, missing) if axis == x.dim() - 1 else (0, 0, 0, missing)
        x = torch.nn.functional.pad(x, padding, value=neutral)
    return x.unflatten(axis, (-1, cells))


def checked_range(name: str, given: tuple[int, int] | None, n: int) -> slice:
    """A half-open range of an axis of n cells; None is all. Raises TraceError naming axis, range and size."""
    start, stop = (0, n) if given is None else given
    if not 0 <= start < stop <= n:
        raise TraceError(
            f"{name} is ({start}, {stop}): expected 0 <= start < stop <= {n}, the number of {name} there are"
        )
    return slice(start, stop)
