"""What the values of a checkpoint say of its health: NaN, Inf, weights that are all zero, weights nobody trained.

A tensor is examined in pieces as they are read, so a look at its values costs no second reading and no memory.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core_model.cancel import CancelToken, Progress
from core_model.checkpoint.shards import TensorStore
from core_model.results import FloatArray
from core_model.wording import counted, shown, some_of

_STANDARD_ERRORS = 6.0
"""How far a mean or a spread may be from what chance allows: beyond, one matrix in 10^8 would be misjudged."""

_TABLE = re.compile(r"\.(embedding|position)\b")


@dataclass(frozen=True, kw_only=True)
class TensorHealth:
    """What one tensor [..., C] holds. `mean` and `deviation` are of its values; rows run along the last axis.

    `constant` is the one value all its numbers have; None where they differ.
    """

    name: str
    shape: tuple[int, ...]
    has_nan: bool
    has_inf: bool
    n_zero_rows: int
    mean: float
    deviation: float
    constant: float | None

    @property
    def n_elements(self) -> int:
        """Numbers in the tensor."""
        return math.prod(self.shape)

    @property
    def is_matrix(self) -> bool:
        """Whether it has rows to speak of."""
        return len(self.shape) >= 2

    @property
    def n_rows(self) -> int:
        """Rows along the last axis."""
        return math.prod(self.shape[:-1])


class Examination:
    """Looks at one tensor piece by piece: `add` them in any order, then ask for the `result`."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self._name, self._shape = name, shape
        self._width = shape[-1] if shape else 1
        self._has_value = np.zeros(math.prod(shape[:-1]), dtype=bool)
        self._has_nan = self._has_inf = False
        self._sum = self._sum_of_squares = 0.0
        self._least, self._most = math.inf, -math.inf

    def add(self, part: slice, values: FloatArray) -> None:
        """The elements `part` of the flattened tensor."""
        if not np.isfinite(values).all():
            self._has_nan |= bool(np.isnan(values).any())
            self._has_inf |= bool(np.isinf(values).any())
            values = np.nan_to_num(values, nan=1.0, posinf=1.0, neginf=1.0)
        self._sum += float(values.sum(dtype=np.float64))
        self._sum_of_squares += float(np.square(values, dtype=np.float64).sum())
        self._least, self._most = min(self._least, float(values.min())), max(self._most, float(values.max()))
        first, last = part.start // self._width, (part.stop - 1) // self._width + 1
        begins = np.maximum(np.arange(first, last) * self._width - part.start, 0)
        self._has_value[first:last] |= np.logical_or.reduceat(values != 0, begins)

    @property
    def result(self) -> TensorHealth:
        """What was found in the pieces added."""
        n = math.prod(self._shape)
        mean = self._sum / n if n else 0.0
        variance = self._sum_of_squares / n - mean * mean if n else 0.0
        return TensorHealth(
            name=self._name,
            shape=self._shape,
            has_nan=self._has_nan,
            has_inf=self._has_inf,
            n_zero_rows=int(np.count_nonzero(~self._has_value)),
            mean=mean,
            deviation=math.sqrt(max(variance, 0.0)),
            constant=self._least if self._least == self._most and not (self._has_nan or self._has_inf) else None,
        )


def examine(
    store: TensorStore,
    names: Iterable[str],
    *,
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> list[TensorHealth]:
    """The health of these stored tensors, those left out whose values cannot be shown. Runs on a worker thread."""
    readable = [name for name in names if store.entries[name].dtype.widen and store.entries[name].dtype.kind == "float"]
    found = []
    for done, name in enumerate(readable):
        examination = Examination(name, store.entries[name].shape)
        for part, values in store.pieces(name):
            if cancel is not None:
                cancel.check()
            examination.add(part, values)
        found.append(examination.result)
        if progress is not None:
            progress((done + 1) / len(readable))
    return found


def health_warnings(found: Sequence[TensorHealth], sites: Mapping[str, str]) -> tuple[str, ...]:
    """One sentence a kind of trouble, with tensors named. `sites` gives our names of the tensors a model uses."""
    sentences = []
    for names, kind in (
        ([one.name for one in found if one.has_nan], "NaN (not a number)"),
        ([one.name for one in found if one.has_inf], "Inf (infinite numbers)"),
    ):
        if names:
            told = counted(len(names), "tensor")
            sentences.append(f"{told} with {kind}, which spreads to whatever reads it: {some_of(names)}")
    matrices = [
        one  # a bias of zeros is no trouble, nor is one stored with an axis more (BART's final_logits_bias)
        for one in found
        if one.is_matrix and one.n_elements and not sites.get(one.name, "").endswith("bias")
    ]
    dead = [one for one in matrices if one.n_zero_rows and not _is_padding(one, sites.get(one.name, ""))]
    if empty := [one.name for one in dead if one.n_zero_rows == one.n_rows]:
        sentences.append(f"{counted(len(empty), 'matrix', 'matrices')} with nothing but zeros: {some_of(empty)}")
    if partly := [one for one in dead if one.n_zero_rows < one.n_rows]:
        n_rows = sum(one.n_zero_rows for one in partly)
        names = [f"{shown(one.name)} ({one.n_zero_rows} of {one.n_rows})" for one in partly]
        sentences.append(f"{counted(n_rows, 'row')} of nothing but zeros: {some_of(names)}")
    if (evidence := untrained(found, sites)) is not None:
        sentences.append(f"looks untrained: {evidence}")
    return tuple(sentences)


def untrained(found: Sequence[TensorHealth], sites: Mapping[str, str]) -> str | None:
    """Why the weights look as an initialisation leaves them; None when anything speaks against it.

    All must hold: every scale of a norm is exactly 1 (or 0, where 1 is added to it), every bias exactly 0, and the
    matrices of one role, which training drives apart, have one spread and a mean of 0 as chance allows: the standard
    errors are s / sqrt(2 n) and s / sqrt(n) for n normal numbers, less for uniform ones.
    """
    used = [one for one in found if one.name in sites]
    vectors = [one for one in used if len(one.shape) == 1]
    scales = [one for one in vectors if sites[one.name].endswith("weight")]  # only norms have weights of one axis
    biases = [one for one in vectors if sites[one.name].endswith("bias")]
    values = {one.constant for one in scales}
    if len(values) != 1 or not values <= {0.0, 1.0} or any(one.constant != 0.0 for one in biases):
        return None
    roles: dict[str, list[TensorHealth]] = defaultdict(list)
    for one in used:
        if one.is_matrix and one.constant is None:
            roles[re.sub(r"\d+", "#", one.name)].append(one)
    repeated = [group for group in roles.values() if len(group) > 1]
    if not repeated or not all(map(_is_one_draw, roles.values())):
        return None
    (value,) = values
    deviations = [one.deviation for group in repeated for one in group]
    zeros = f"{counted(len(biases), 'bias', 'biases')} exactly 0, " if biases else ""
    return (
        f"{counted(len(scales), 'norm scale')} exactly {value:g}, {zeros}and matrices as drawn at random in every "
        f"layer (standard deviations {min(deviations):.3g} to {max(deviations):.3g}, the same within a role)"
    )


def _is_padding(one: TensorHealth, site: str) -> bool:
    """Whether these are rows that a table of tokens or positions keeps for padding and for what nothing uses."""
    return _TABLE.search(site) is not None and (one.n_zero_rows < one.n_rows or one.n_rows == 1)


def _is_one_draw(group: Sequence[TensorHealth]) -> bool:
    """Whether these matrices may be numbers drawn from one distribution around 0."""
    spread = sum(one.deviation for one in group) / len(group)
    return all(
        abs(one.mean) <= _STANDARD_ERRORS * spread / math.sqrt(one.n_elements)
        and abs(one.deviation - spread) <= _STANDARD_ERRORS * spread / math.sqrt(2 * one.n_elements)
        for one in group
    )
