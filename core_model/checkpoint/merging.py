"""Weights of a base as an adapter changes them, computed when they are read: see `adapter` for the formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from core_model.checkpoint.files import SafetensorsFile
from core_model.checkpoint.header import Entry
from core_model.pieces import Numbers
from core_model.results import FloatArray

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is added to one stored weight: `scale` times B A, tensors of the adapter; `transposed`: times (B A)^T.

    `magnitude` is the tensor of DoRA's lengths, one an output.
    """

    a: str
    b: str
    scale: float
    transposed: bool
    magnitude: str | None = None

    def factors(self, adapter: SafetensorsFile) -> tuple[FloatArray, FloatArray]:
        """Two factors [rows, r] and [r, columns] of it, the scale in the first."""
        a, b = adapter.read(self.a), adapter.read(self.b)
        left, right = (a.T, b.T) if self.transposed else (b, a)
        return np.float32(self.scale) * left, right


class Changes:
    """The changes an adapter makes to the weights of a file, by their names there."""

    def __init__(self, adapter: SafetensorsFile, by_name: Mapping[str, Change]) -> None:
        self._adapter, self._by_name = adapter, by_name
        self._gains: dict[str, FloatArray] = {}

    def made(
        self,
        name: str,
        pieces: Iterator[tuple[slice, npt.NDArray[Number]]],
        whole: Callable[[], Iterator[tuple[slice, FloatArray]]],
    ) -> Iterator[tuple[slice, npt.NDArray[Number]]]:
        """Pieces of a weight with its change, in their own format; `whole` gives all of the weight as stored."""
        change = self._by_name.get(name)
        if change is None:
            yield from pieces
            return
        left, right = change.factors(self._adapter)
        if change.magnitude is not None and name not in self._gains:
            self._gains[name] = self._gain(change, left, right, whole())
        gain = self._gains.get(name)
        for part, values in pieces:
            merged = np.add(values, _product(left, right, part))
            if gain is not None:
                merged *= gain[_outputs(change, right.shape[1], part)]
            yield part, merged.astype(values.dtype)

    def _gain(
        self, change: Change, left: FloatArray, right: FloatArray, whole: Iterator[tuple[slice, FloatArray]]
    ) -> FloatArray:
        """What the weights of each output are multiplied by to be as long as learned; 0 where they are all 0."""
        assert change.magnitude is not None
        length = self._adapter.read(change.magnitude).ravel()
        squares = np.zeros(len(length))
        for part, values in whole:
            merged = values + _product(left, right, part)
            outputs = _outputs(change, right.shape[1], part)
            squares += np.bincount(outputs, weights=np.square(merged, dtype=np.float64), minlength=len(length))
        found = np.sqrt(squares)
        return np.divide(length, found, out=np.zeros_like(found), where=found > 0).astype(np.float32)


def _product(left: FloatArray, right: FloatArray, part: slice) -> FloatArray:
    """Elements `part` of the flattened product of two factors."""
    n_columns = right.shape[1]
    first, last = part.start // n_columns, (part.stop - 1) // n_columns + 1
    begin = part.start - first * n_columns
    return (left[first:last] @ right).ravel()[begin : begin + part.stop - part.start]


def _outputs(change: Change, n_columns: int, part: slice) -> npt.NDArray[np.intp]:
    """The output that each element of the flattened weight belongs to: its row, or its column where transposed."""
    elements = np.arange(part.start, part.stop)
    return elements % n_columns if change.transposed else elements // n_columns


class ChangedFile(SafetensorsFile):
    """A file whose weights are read with an adapter's changes, and only those that are named, by the names given them.

    `names` maps names of the merged model to those stored.
    """

    def __init__(self, path: Path, changes: Changes, names: Callable[[str], str | None]) -> None:
        super().__init__(path)
        self._changes = changes
        stored = super().entries
        self._named = {new: entry for name, entry in stored.items() if (new := names(name)) is not None}

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The tensors that come from here."""
        return self._named

    def pieces(self, name: str, begin: int = 0, end: int | None = None) -> Iterator[tuple[slice, FloatArray]]:
        """The merged values."""
        return self._changes.made(name, super().pieces(name, begin, end), lambda: super(ChangedFile, self).pieces(name))

    def exact_pieces(self, name: str, begin: int = 0, end: int | None = None) -> Iterator[tuple[slice, Numbers]]:
        """The merged values in the format of the base."""
        exact = super().exact_pieces(name, begin, end)
        return self._changes.made(name, exact, lambda: super(ChangedFile, self).pieces(name))


class WholeTensors(ChangedFile):
    """The tensors an adapter stores whole, such as a new output head; `factors` is closed with this file."""

    def __init__(self, factors: SafetensorsFile, changes: Changes, names: Callable[[str], str | None]) -> None:
        super().__init__(factors.path, changes, names)
        self._factors = factors

    def close(self) -> None:
        """Release the file, and the factors."""
        super().close()
        self._factors.close()
