"""Part of one head's matrix, reduced to at most a screen's pixels: exact tiles, pooled overviews, thumbnails.

Blocks of rows and columns are computed, reduced and dropped; what is held grows with the picture, not with the length.
Shape letters: H heads, N rows and M columns of a block, Y and X pixels down and across.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from core_model.cancel import CancelToken, Progress
from core_model.errors import TraceError
from core_model.nn.scores import HeadInputs
from core_model.results import Reduce
from core_model.trace.scores import HeadGroup, HeadScores

_BLOCK = (384, 384)
"""Rows and columns of a block of one head: its 576 KiB of float32 stay in a cache through product and maximum."""
_GROUP = 12
"""Heads that are computed together at most."""
_GROUP_BLOCK = (128, 256)
"""Rows and columns of a block of several heads: a core does one head after another, and a group stays in its cache."""
_GROUP_BYTES = 1 << 26
"""What the queries and keys of a group may take. One head may take more: it is computed alone."""
_SAMPLE_SCORES = {True: 1 << 24, False: 1 << 22}
"""Scores of the whole rows that a sample takes cells from, with their normalisers known or to be computed: with these,
and the peaks of the rows, it is there within 100 ms on two cores."""
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

    "sample" takes the first cell of each: exact weights of some cells, at once at any length, for which it has fewer
    pixels down where rows are very long. Exact when a pixel is a cell. The last pixel of an axis spans what is left.
    Raises Cancelled between blocks.
    """
    n_rows, n_cols = rows.stop - rows.start, cols.stop - cols.start
    if reduce == "sample":
        size = min(size[0], max(1, _SAMPLE_SCORES[head.is_prepared] // head.n_keys)), size[1]
    down, across = -(-n_rows // size[0]), -(-n_cols // size[1])
    if reduce == "sample":
        some_rows, some_cols = slice(rows.start, rows.stop, down), slice(cols.start, cols.stop, across)
        weights_YX = head.sample(some_rows, some_cols, cancel)
        return Pooled(weights=weights_YX, masked=head.masked(some_rows, some_cols), cells=(down, across))
    head.prepare(cancel)
    if down == across == 1:
        return Pooled(weights=head.weights(rows, cols), masked=head.masked(rows, cols), cells=(1, 1))
    picture = _pooled(HeadGroup((head,)), rows, cols, (down, across), reduce, cancel, progress)
    return Pooled(weights=picture.weights[0], masked=picture.masked, cells=picture.cells)


def thumbnails(heads: HeadInputs, size: int, *, cancel: CancelToken | None = None) -> torch.Tensor:
    """Max-pooled pictures [H, Y, X] of the whole of every head, at most `size` pixels a side; NaN where masked."""
    rows, cols = slice(0, heads.n_queries), slice(0, heads.n_keys)
    down, across = -(-heads.n_queries // size), -(-heads.n_keys // size)
    n_heads = heads.q_BHND.shape[1]
    # A head that an edit changed has a mask of its own.
    n_most = 1 if heads.replaced else min(_GROUP, max(1, _GROUP_BYTES // HeadScores(heads, 0).n_bytes))
    n_groups = -(-n_heads // n_most)
    pictures: list[torch.Tensor] = []
    for group in range(n_groups):
        chosen = range(group * n_heads // n_groups, (group + 1) * n_heads // n_groups)
        scores = HeadGroup([HeadScores(heads, head) for head in chosen])
        for head in scores.heads:
            head.prepare(cancel)
        picture = _pooled(scores, rows, cols, (down, across), "max", cancel)
        pictures.append(picture.weights.masked_fill(picture.masked, float("nan")))
    return torch.cat(pictures)


def _pooled(
    heads: HeadGroup,
    rows: slice,
    cols: slice,
    cells: tuple[int, int],
    reduce: Reduce,
    cancel: CancelToken | None,
    progress: Progress | None = None,
) -> Pooled:
    """Blocks of rows x cols one after another, each taken in and dropped: weights [H, Y, X], masked [Y, X]."""
    canvas = _Canvas(heads, rows, cols, cells, reduce)
    block = _BLOCK if len(heads.heads) == 1 else _GROUP_BLOCK
    row_chunks = list(_chunks(0, rows.stop - rows.start, cells[0], block[0]))
    for done, (top, bottom) in enumerate(row_chunks, start=1):
        seen = heads.first.reach(slice(rows.start + top, rows.start + bottom))
        for left, right in _chunks(*_whole_pixels(seen, cols, cells[1]), cells[1], block[1]):
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

    def __init__(self, heads: HeadGroup, rows: slice, cols: slice, cells: tuple[int, int], reduce: Reduce) -> None:
        self._heads, self._rows, self._cols, self._cells, self._reduce = heads, rows, cols, cells, reduce
        n_heads, device = len(heads.heads), heads.first.inputs.q_BHND.device
        shape = n_heads, -(-(rows.stop - rows.start) // cells[0]), -(-(cols.stop - cols.start) // cells[1])
        self._best_HYX = torch.full(shape, float("-inf"), device=device)
        self._sum_HYX = torch.zeros(shape if reduce == "mean" else (n_heads, 0, 0), device=device)
        self._buffer = torch.empty(0, device=device)

    def add(self, top: int, bottom: int, left: int, right: int) -> None:
        """Compute and take in the block of rows top...bottom and columns left...right, counted from the corner."""
        rows = slice(self._rows.start + top, self._rows.start + bottom)
        cols = slice(self._cols.start + left, self._cols.start + right)
        if self._heads.first.coverage(rows, cols) == "none":
            return
        shape = len(self._heads.heads), bottom - top, right - left
        n_cells = math.prod(shape)
        if self._buffer.numel() < n_cells:
            self._buffer = torch.empty(n_cells, device=self._buffer.device)
        e_HNM = self._heads.exponents(rows, cols, out=self._buffer[:n_cells].view(shape))
        down, across = self._cells
        pixels = slice(None), slice(top // down, -(-bottom // down)), slice(left // across, -(-right // across))
        best_HYX = _by_pixel(_by_pixel(e_HNM, 1, down, float("-inf")).amax(2), 2, across, float("-inf")).amax(3)
        torch.maximum(self._best_HYX[pixels], best_HYX, out=self._best_HYX[pixels])
        if self._reduce == "mean":
            weights_HNM = self._heads.first.to_weights(e_HNM)
            self._sum_HYX[pixels] += _by_pixel(_by_pixel(weights_HNM, 1, down, 0.0).sum(2), 2, across, 0.0).sum(3)

    def finish(self) -> Pooled:
        """The picture as weights."""
        masked_YX = (self._best_HYX == float("-inf")).all(0)
        if self._reduce == "max":
            weights_HYX = self._heads.first.to_weights(self._best_HYX)
            return Pooled(weights=weights_HYX, masked=masked_YX, cells=self._cells)
        n_rows, n_cols = self._rows.stop - self._rows.start, self._cols.stop - self._cols.start
        (down, across), (n_down, n_across) = self._cells, self._sum_HYX.shape[1:]
        height_Y = (n_rows - torch.arange(n_down, device=masked_YX.device) * down).clamp(max=down)
        width_X = (n_cols - torch.arange(n_across, device=masked_YX.device) * across).clamp(max=across)
        weights_HYX = self._sum_HYX / (height_Y[:, None] * width_X)
        return Pooled(weights=weights_HYX, masked=masked_YX, cells=self._cells)


def _whole_pixels(seen: slice, shown: slice, per_pixel: int) -> tuple[int, int]:
    """The part of the cells shown that is seen, counted from where they begin and widened to the edges of pixels."""
    first, last = max(seen.start - shown.start, 0), min(seen.stop, shown.stop) - shown.start
    return first - first % per_pixel, min(last + -last % per_pixel, shown.stop - shown.start)


def _chunks(start: int, stop: int, per_pixel: int, block: int) -> Iterator[tuple[int, int]]:
    """Ranges that cover start...stop, each either whole pixels or within one, at most about a block long."""
    if per_pixel <= block:
        step = per_pixel * max(1, block // per_pixel)
        yield from ((first, min(first + step, stop)) for first in range(start, stop, step))
        return
    for pixel in range(start, stop, per_pixel):
        end = min(pixel + per_pixel, stop)
        yield from ((first, min(first + block, end)) for first in range(pixel, end, block))


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
