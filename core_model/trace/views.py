"""Part of one head's matrix, reduced to at most a screen's pixels: exact tiles, pooled overviews, thumbnails.

Blocks of rows and columns are computed, reduced and dropped; what is held grows with the picture, not with the length.
Shape letters: H heads, N rows and M columns of a block, Y and X pixels down and across.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import get_args

import torch

from core_model.cancel import CancelToken, Progress
from core_model.errors import TraceError
from core_model.nn import masks
from core_model.nn.scores import HeadInputs
from core_model.results import Reduce
from core_model.trace.head_group import HeadGroup, head_groups
from core_model.trace.scores import HeadScores, prepare_together

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
    gain_M: torch.Tensor | None = None,
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> Pooled:
    """The weights of rows x cols, each pixel the max or mean of ceil(n / size) cells, at most size[0] x size[1] pixels.

    Those of each key are multiplied by its gain, where there is one.
    "sample" takes the first cell of each: exact weights of some cells, at once at any length, for which it has fewer
    pixels down where rows are very long. Exact when a pixel is a cell. The last pixel of an axis spans what is left.
    Raises Cancelled between blocks, TraceError for another way to reduce and for no pixels.
    """
    if cancel is not None:
        cancel.check()
    _check_reduce(reduce)
    check_size(size)
    n_rows, n_cols = rows.stop - rows.start, cols.stop - cols.start
    if reduce == "sample":
        size = min(size[0], max(1, _SAMPLE_SCORES[head.is_prepared] // head.n_keys)), size[1]
    down, across = -(-n_rows // size[0]), -(-n_cols // size[1])
    if reduce == "sample":
        some_rows, some_cols = slice(rows.start, rows.stop, down), slice(cols.start, cols.stop, across)
        weights_YX, masked_YX = head.sample(some_rows, some_cols, cancel), head.masked(some_rows, some_cols)
        if progress is not None:
            progress(1.0)
        return Pooled(weights=_gained(weights_YX, masked_YX, gain_M, some_cols), masked=masked_YX, cells=(down, across))
    normalizer_1N = head.prepare(cancel)[None]
    if down == across == 1:
        weights_YX, masked_YX = head.weights(rows, cols, cancel, progress), head.masked(rows, cols)
        return Pooled(weights=_gained(weights_YX, masked_YX, gain_M, cols), masked=masked_YX, cells=(1, 1))
    canvas = _Canvas(HeadGroup(head.inputs, cols, gain_M), normalizer_1N, rows, cols, (down, across), reduce)
    picture = canvas.fill(cancel, progress)
    return Pooled(weights=picture.weights[0], masked=picture.masked, cells=picture.cells)


def _gained(
    weights_YX: torch.Tensor, masked_YX: torch.Tensor, gain_M: torch.Tensor | None, cols: slice
) -> torch.Tensor:
    return weights_YX if gain_M is None else (weights_YX * gain_M[cols]).masked_fill_(masked_YX, 0.0)


def thumbnails(
    heads: HeadInputs, each: Sequence[HeadScores], size: int, *, cancel: CancelToken | None = None
) -> torch.Tensor:
    """Max-pooled pictures [H, Y, X] of the whole of every head, at most `size` pixels a side; NaN where masked.

    `each` are the scores of each of the heads. Raises TraceError where `size` is less than 1.
    """
    check_count("size", size)
    prepare_together(heads, each, cancel)
    rows, cols = slice(0, heads.n_queries), slice(0, heads.n_keys)
    cells = -(-heads.n_queries // size), -(-heads.n_keys // size)
    pictures: list[torch.Tensor] = []
    for together, inputs in head_groups(heads):
        normalizer_HN = torch.stack([head.row_normalizer for head in each[together]])
        picture = _Canvas(HeadGroup(inputs), normalizer_HN, rows, cols, cells, "max").fill(cancel)
        pictures.append(picture.weights.masked_fill(picture.masked, float("nan")))
    return torch.cat(pictures)


def row_peaks(
    head: HeadScores, rows: slice, n: int, reduce: Reduce = "max", *, cancel: CancelToken | None = None
) -> torch.Tensor:
    """The largest weight over all keys under each of n pixels down [n]: of every row there, or of the sampled one.

    Raises TraceError where n is less than 1.
    """
    check_count("n", n)
    _check_reduce(reduce)
    keys = slice(0, head.n_keys)
    if reduce != "sample":
        return pool(head, rows, keys, (n, 1), cancel=cancel).weights[:, 0]
    down = -(-(rows.stop - rows.start) // n)
    starts = range(rows.start, rows.stop, down * _PEAK_ROWS)
    blocks = [slice(start, min(start + down * _PEAK_ROWS, rows.stop), down) for start in starts]
    return torch.cat([head.sample(block, keys, cancel).amax(1) for block in blocks])


class _Canvas:
    """A picture in the making. A block adds to the pixels it touches, so blocks may be smaller or larger than one."""

    def __init__(
        self,
        heads: HeadGroup,
        normalizer_HN: torch.Tensor,
        rows: slice,
        cols: slice,
        cells: tuple[int, int],
        reduce: Reduce,
    ) -> None:
        self._heads, self._normalizer_HN = heads, normalizer_HN
        self._rows, self._cols, self._cells, self._reduce = rows, cols, cells, reduce
        n_down, n_across = -(-(rows.stop - rows.start) // cells[0]), -(-(cols.stop - cols.start) // cells[1])
        shape, device = (n_across, heads.n_heads, n_down), heads.device
        self._best_XHY = torch.full(shape, float("-inf"), dtype=torch.float32, device=device)
        sum_shape = shape if reduce == "mean" else (0, heads.n_heads, 0)
        self._sum_XHY = torch.zeros(sum_shape, dtype=torch.float32, device=device)

    def fill(self, cancel: CancelToken | None, progress: Progress | None = None) -> Pooled:
        """Blocks of rows x cols one after another, each taken in and dropped: weights [H, Y, X], masked [Y, X]."""
        rows, cols, (down, across) = self._rows, self._cols, self._cells
        row_chunks = list(_chunks(0, rows.stop - rows.start, down, self._heads.n_block_rows))
        for done, (top, bottom) in enumerate(row_chunks, start=1):
            seen = _whole_pixels(self._heads.spans(slice(rows.start + top, rows.start + bottom)), cols, across)
            n_cols = self._heads.n_block_cols(bottom - top)
            for left, right in (chunk for span in seen for chunk in _chunks(*span, across, n_cols)):
                if cancel is not None:
                    cancel.check()
                self._add(top, bottom, left, right)
            if progress is not None:
                progress(done / len(row_chunks))
        return self._finished()

    def _add(self, top: int, bottom: int, left: int, right: int) -> None:
        """Compute and take in the block of rows top...bottom and columns left...right, counted from the corner."""
        rows = slice(self._rows.start + top, self._rows.start + bottom)
        cols = slice(self._cols.start + left, self._cols.start + right)
        e_MHN = self._heads.exponents(rows, cols, self._normalizer_HN)
        down, across = self._cells
        pixels = slice(left // across, -(-right // across)), slice(None), slice(top // down, -(-bottom // down))
        # First the axis whose cells lie far from each other: the processor takes many of their neighbours at a time.
        axes = (0, 2) if e_MHN.stride(0) > e_MHN.stride(2) else (2, 0)
        per_pixel = {0: across, 2: down}
        best_XHY = e_MHN
        for axis in axes:
            best_XHY = _by_pixel(best_XHY, axis, per_pixel[axis], float("-inf")).amax(axis + 1)
        torch.maximum(self._best_XHY[pixels], best_XHY, out=self._best_XHY[pixels])
        if self._reduce == "mean":
            sum_XHY = self._heads.to_weights(e_MHN)
            for axis in axes:
                sum_XHY = _by_pixel(sum_XHY, axis, per_pixel[axis], 0.0).sum(axis + 1)
            self._sum_XHY[pixels] += sum_XHY

    def _finished(self) -> Pooled:
        """The picture as weights."""
        best_HYX = self._best_XHY.permute(1, 2, 0).contiguous()
        masked_YX = best_HYX.amax(0).isneginf()
        if self._reduce == "max":
            return Pooled(weights=self._heads.to_weights(best_HYX), masked=masked_YX, cells=self._cells)
        n_rows, n_cols = self._rows.stop - self._rows.start, self._cols.stop - self._cols.start
        (down, across), (n_down, n_across) = self._cells, best_HYX.shape[1:]
        height_Y = (n_rows - torch.arange(n_down, device=masked_YX.device) * down).clamp(max=down)
        width_X = (n_cols - torch.arange(n_across, device=masked_YX.device) * across).clamp(max=across)
        weights_HYX = (self._sum_XHY.permute(1, 2, 0) / (height_Y[:, None] * width_X)).contiguous()
        return Pooled(weights=weights_HYX, masked=masked_YX, cells=self._cells)


def _whole_pixels(seen: list[tuple[int, int]], shown: slice, per_pixel: int) -> list[tuple[int, int]]:
    """The cells shown that are seen, counted from where they begin: ranges widened to the edges of pixels, and joined
    where they meet."""
    n = shown.stop - shown.start
    within = ((max(start - shown.start, 0), min(stop - shown.start, n)) for start, stop in seen)
    widened = [(first - first % per_pixel, min(last + -last % per_pixel, n)) for first, last in within if first < last]
    return masks.joined(widened)


def _chunks(start: int, stop: int, per_pixel: int, block: int) -> Iterator[tuple[int, int]]:
    """Ranges that cover start...stop, each either whole pixels or within one, at most about a block long."""
    if per_pixel <= block:
        step = per_pixel * max(1, block // per_pixel)
        yield from ((first, min(first + step, stop)) for first in range(start, stop, step))
        return
    for pixel in range(start, stop, per_pixel):
        end = min(pixel + per_pixel, stop)
        yield from ((first, min(first + block, end)) for first in range(pixel, end, block))


def _by_pixel(x_MHN: torch.Tensor, axis: int, per_pixel: int, neutral: float) -> torch.Tensor:
    """The first or last of three axes split into (pixels, cells of a pixel); a part of a pixel is filled up with a
    neutral value."""
    n = x_MHN.shape[axis]
    cells = min(n, per_pixel)
    missing = -n % cells
    if missing:
        padding = (0, missing) if axis == 2 else (0, 0, 0, 0, 0, missing)
        x_MHN = torch.nn.functional.pad(x_MHN, padding, value=neutral)
    return x_MHN.unflatten(axis, (-1, cells))


def check_size(size: tuple[int, int]) -> None:
    """Raise TraceError unless a picture has two sides of at least one pixel."""
    if not isinstance(size, Sequence) or len(size) != 2 or min(whole("size", side) for side in size) < 1:
        raise TraceError(f"size is {size}: a view needs at least 1 x 1 pixels, (down, across)")


def _check_reduce(reduce: Reduce) -> None:
    if reduce not in get_args(Reduce):
        raise TraceError(f"reduce is {reduce!r}: expected one of {', '.join(map(repr, get_args(Reduce)))}")


def whole(name: str, value: int) -> int:
    """The whole number, or TraceError where it is none."""
    try:
        return index(value)
    except TypeError:
        raise TraceError(f"{name} is {value!r}: expected a whole number") from None


def check_count(name: str, n: int) -> None:
    """Raise TraceError where fewer than one is asked for."""
    if whole(name, n) < 1:
        raise TraceError(f"{name} is {n}: expected at least 1")


def checked_range(name: str, given: tuple[int, int] | None, n: int) -> slice:
    """A half-open range of an axis of n cells; None is all. Raises TraceError naming axis, range and size."""
    start, stop = (0, n) if given is None else (whole(name, end) for end in given)
    if not 0 <= start < stop <= n:
        raise TraceError(
            f"{name} is ({start}, {stop}): expected 0 <= start < stop <= {n}, the number of {name} there are"
        )
    return slice(start, stop)
