"""The numbers of one tensor in numbers: range, mean, spread, norm, zeros, what is not finite, and a histogram.

Two passes over the tensor in pieces: the first gives the range and everything else, the second counts. Mean and spread
are merged piece by piece (Chan, Golub, LeVeque 1983), which loses no digits where the mean is far from 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core_model.cancel import CancelToken, Progress
from core_model.pieces import Numbers, PiecewiseArray
from core_model.results import TensorStatistics, read_only

N_BINS = 128
_CHUNK = 1 << 16
"""Numbers held in float64 at once: 512 KiB."""


def tensor_statistics(
    tensor: PiecewiseArray, *, cancel: CancelToken | None = None, progress: Progress | None = None
) -> TensorStatistics:
    """What is in the tensor; mean, spread and norm in float64 over its finite numbers. Raises Cancelled between pieces.

    The spread is that of the numbers themselves (divided by n, not n - 1). The histogram has N_BINS bins of equal width
    from the smallest to the largest finite number, or one where these are too close to be divided.
    """
    n_elements = math.prod(tensor.shape)
    sums = _Sums()
    with np.errstate(over="ignore", invalid="ignore"):  # float64 close to its end: the sums become infinite, as said
        for done, values in _chunks(tensor, cancel):
            sums.add(values)
            if progress is not None:
                progress(0.5 * done / n_elements)
    edges = _edges(sums.low, sums.high) if sums.n_finite else np.array([])
    counts = np.array([sums.n_finite] if len(edges) == 2 else np.zeros(max(len(edges) - 1, 0)), dtype=np.int64)
    if len(counts) > 1:
        scale = _scale(sums.low, sums.high)
        for done, values in _chunks(tensor, cancel):
            finite = values[np.isfinite(values)] * scale
            counts += np.histogram(finite, bins=len(counts), range=(sums.low * scale, sums.high * scale))[0]
            if progress is not None:
                progress(0.5 + 0.5 * done / n_elements)
    is_empty = sums.n_finite == 0
    return TensorStatistics(
        n_elements=n_elements,
        n_zero=sums.n_zero,
        n_nan=sums.n_nan,
        n_infinite=sums.n_infinite,
        minimum=math.nan if is_empty else sums.low,
        maximum=math.nan if is_empty else sums.high,
        mean=math.nan if is_empty else sums.mean,
        std=math.nan if is_empty else math.sqrt(sums.squares / sums.n_finite),
        norm=math.sqrt(sums.total_squares),
        counts=read_only(counts),
        edges=read_only(edges),
    )


@dataclass
class _Sums:
    """Counts and moments so far; `squares` is the sum of squared distances from the mean."""

    n_finite: int = 0
    n_zero: int = 0
    n_nan: int = 0
    n_infinite: int = 0
    low: float = math.inf
    high: float = -math.inf
    mean: float = 0.0
    squares: float = 0.0
    total_squares: float = 0.0

    def add(self, values: Numbers) -> None:
        finite = values[np.isfinite(values)]
        n_nan = int(np.isnan(values).sum())
        self.n_nan += n_nan
        self.n_infinite += values.size - finite.size - n_nan
        if not finite.size:
            return
        self.n_zero += finite.size - int(np.count_nonzero(finite))
        self.low, self.high = min(self.low, float(finite.min())), max(self.high, float(finite.max()))
        mean = float(finite.mean())
        off = mean - self.mean
        both = self.n_finite + finite.size
        self.squares += float(np.square(finite - mean).sum()) + off * off * self.n_finite * finite.size / both
        self.mean += off * finite.size / both
        self.total_squares += float(np.square(finite).sum())
        self.n_finite = both


def _chunks(tensor: PiecewiseArray, cancel: CancelToken | None) -> Iterator[tuple[int, Numbers]]:
    """How many elements have come, and the newest of them in float64."""
    for part, piece in tensor.pieces():
        if cancel is not None:
            cancel.check()
        for first in range(0, piece.size, _CHUNK):
            values = piece[first : first + _CHUNK].astype(np.float64)
            yield part.start + first + values.size, values


def _edges(low: float, high: float) -> Numbers:
    """Where the bins of the histogram end."""
    scale = _scale(low, high)
    edges = np.linspace(low * scale, high * scale, N_BINS + 1) / scale
    return edges if (np.diff(edges * scale) > 0).all() else np.array([low, high])


def _scale(low: float, high: float) -> float:
    """1, or less where the width of the range is more than a float64 can say."""
    return 1.0 if math.isfinite(high - low) else 0.25
