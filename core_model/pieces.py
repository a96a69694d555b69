"""Arrays that are looked at in pieces, so that one of any size needs a few megabytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core_model.results import FloatArray

Numbers = npt.NDArray[Any]
"""Real numbers in any numpy format."""

PIECE_ELEMENTS = 1 << 18
"""Of an array that is computed, as many numbers are held at once: 1 MiB of float32."""


class PiecewiseArray(Protocol):
    """An array whose numbers come in pieces, in the order of its elements (the last index runs fastest)."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of its axes."""
        ...

    def pieces(self, begin: int = 0, end: int | None = None) -> Iterator[tuple[slice, Numbers]]:
        """Elements begin to end, flat, at most some megabytes at a time, each piece with its place in the array."""
        ...


@dataclass(frozen=True, eq=False)
class HeldArray:
    """An array in memory."""

    values: Numbers

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def pieces(self, begin: int = 0, end: int | None = None) -> Iterator[tuple[slice, Numbers]]:
        flat = self.values.reshape(-1)
        end = flat.size if end is None else end
        for first in range(begin, end, PIECE_ELEMENTS):
            part = slice(first, min(first + PIECE_ELEMENTS, end))
            yield part, flat[part]


@dataclass(frozen=True, eq=False)
class Product:
    """left [R, D] times right [D, C], of which only the rows looked at are computed."""

    left: FloatArray
    right: FloatArray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.left.shape[0], self.right.shape[1]

    def pieces(self, begin: int = 0, end: int | None = None) -> Iterator[tuple[slice, Numbers]]:
        n_rows, n_cols = self.shape
        end = n_rows * n_cols if end is None else end
        while begin < end:
            row, col = divmod(begin, n_cols)
            if col or end - begin < n_cols:
                stop = min(end, (row + 1) * n_cols)
                values = self.left[row] @ self.right[:, col : col + stop - begin]
            else:
                last = min(end // n_cols, row + max(1, PIECE_ELEMENTS // n_cols))
                stop, values = last * n_cols, (self.left[row:last] @ self.right).reshape(-1)
            yield slice(begin, stop), values
            begin = stop


def as_matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """The rows and columns an array is shown with: a vector is one row.

    Of more than two axes, the first ones make the rows and the others the columns, divided where these are nearest in
    length: 768 x 3 x 16 x 16 becomes 768 x 768.
    """
    if len(shape) < 2:
        return 1, shape[0] if shape else 1
    sides = [(math.prod(shape[:n]), math.prod(shape[n:])) for n in range(1, len(shape))]
    return min(sides, key=lambda side: abs(side[0] - side[1]))


def read_block(array: PiecewiseArray, rows: slice, cols: slice) -> Numbers:
    """Rows x cols of the array's matrix in float64; reads what lies between the columns where it is little."""
    n_cols = as_matrix(array.shape)[1]
    width = cols.stop - cols.start
    if 8 * width < n_cols:
        lines = [
            _flat(array, row * n_cols + cols.start, row * n_cols + cols.stop) for row in range(rows.start, rows.stop)
        ]
        return np.stack(lines)
    block = _flat(array, rows.start * n_cols, rows.stop * n_cols).reshape(-1, n_cols)
    return block[:, cols]


def _flat(array: PiecewiseArray, begin: int, end: int) -> Numbers:
    values = np.empty(end - begin)
    for part, piece in array.pieces(begin, end):
        values[part.start - begin : part.stop - begin] = piece
    return values
