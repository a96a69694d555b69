"""The stored tensors of a checkpoint as a tree: grouped, filtered and sorted, quick for tens of thousands."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any, Final, Literal, TypeAlias

from core_model.results import TensorInfo
from explorer.state.app_state import AppState
from explorer.state.tensors import TensorList
from explorer.viewmodels.sizes import bytes_text, count_text

Grouping: TypeAlias = Literal["layer", "role", "none"]
Column: TypeAlias = Literal["name", "role", "shape", "dtype", "size", "file"]

GROUPINGS: Final[tuple[tuple[Grouping, str], ...]] = (
    ("layer", "By layer"),
    ("role", "By role"),
    ("none", "Ungrouped"),
)
COLUMNS: Final[tuple[tuple[Column, str], ...]] = (
    ("name", "Name"),
    ("shape", "Shape"),
    ("dtype", "Type"),
    ("size", "Size"),
    ("role", "Role"),
    ("file", "File"),
)
_LAYER: Final = re.compile(r"^(?P<layer>(?:[^.]+\.)*?\d+)\.(?P<role>.+)$")
"""A name with a layer in it: everything up to its first number, and the rest."""
_DIGITS: Final = re.compile(r"\d+")
_PLACES: Final = 8


@dataclass(frozen=True, kw_only=True)
class TensorRow:
    """One tensor in words. `layer` and `role` are those of our name for it, else of its own."""

    name: str
    layer: str
    role: str
    site: str
    shape: str
    dtype: str
    size: str
    file: str
    n_elements: int
    n_bytes: int

    @cached_property
    def sought(self) -> str:
        """What a filter looks through."""
        return f"{self.name} {self.site} {self.dtype} {self.shape} {self.file}".lower()

    @cached_property
    def order(self) -> str:
        """What sorts its name among others, numbers by their size."""
        return _natural(self.name)

    def text(self, column: Column) -> str:
        """What a column shows."""
        return str(getattr(self, column))


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorTable:
    """All tensors of a checkpoint, in the order of its files."""

    rows: tuple[TensorRow, ...]


@dataclass(frozen=True, kw_only=True)
class TensorGroup:
    """Rows that belong together, by their numbers in the table; `title` is empty where nothing is grouped.

    `prefix` is what all their names begin with, up to a dot: it needs to be read only once.
    """

    title: str
    rows: tuple[int, ...]
    prefix: str = ""


def tensor_table(answer: TensorList, state: AppState) -> TensorTable:
    """Every tensor in words."""
    return TensorTable(rows=tuple(_row(info) for info in answer.tensors))


def shape_text(shape: Sequence[int]) -> str:
    """ "768 x 768"; a tensor without axes is a scalar."""
    return " \u00d7 ".join(map(str, shape)) or "scalar"


def arranged(
    table: TensorTable,
    *,
    words: str = "",
    grouping: Grouping = "layer",
    column: Column = "name",
    is_falling: bool = False,
) -> tuple[TensorGroup, ...]:
    """The rows whose name, role, type or file has every word, sorted within their groups; groups in natural order."""
    wanted = words.lower().split()
    rows = table.rows
    found = [n for n, row in enumerate(rows) if all(word in row.sought for word in wanted)]
    found.sort(key=lambda n: _ORDER[column](rows[n]), reverse=is_falling)
    if grouping == "none":
        return (TensorGroup(title="", rows=tuple(found)),)
    members: dict[str, list[int]] = defaultdict(list)
    for n in found:
        members[rows[n].layer if grouping == "layer" else rows[n].role].append(n)
    return tuple(
        TensorGroup(title=title, rows=tuple(members[title]), prefix=_prefix([rows[n].name for n in members[title]]))
        for title in sorted(members, key=_natural)
    )


def totals(table: TensorTable, groups: Sequence[TensorGroup]) -> str:
    """What the shown tensors come to, and how many there are besides."""
    shown = [table.rows[n] for group in groups for n in group.rows]
    n_files = len({row.file for row in shown})
    parts = (
        _counted(len(shown), "tensor") + (f" of {len(table.rows)}" if len(shown) < len(table.rows) else ""),
        f"{count_text(sum(row.n_elements for row in shown))} numbers",
        bytes_text(sum(row.n_bytes for row in shown)),
        _counted(n_files, "file"),
    )
    return ", ".join(parts)


def first_to_see(table: TensorTable, groups: Sequence[TensorGroup]) -> str | None:
    """The tensor shown before one is chosen: the first matrix of floating-point numbers, else the first of all."""
    rows = [table.rows[n] for group in groups for n in group.rows]
    matrices = (row.name for row in rows if row.shape.count("\u00d7") == 1 and "float" in row.dtype)
    return next(matrices, rows[0].name if rows else None)


def _row(info: TensorInfo) -> TensorRow:
    layer, role = _place(info)
    return TensorRow(
        name=info.name,
        layer=layer,
        role=role,
        site=info.site or "",
        shape=shape_text(info.shape),
        dtype=info.dtype,
        size=bytes_text(info.n_bytes),
        file=info.file.name,
        n_elements=math.prod(info.shape),
        n_bytes=info.n_bytes,
    )


def _place(info: TensorInfo) -> tuple[str, str]:
    """ "decoder layer 3" and "attention.query.weight"; of a fused tensor all roles, of an unknown one its own words."""
    if info.site is None:
        if match := _LAYER.match(info.name):
            return match["layer"], match["role"]
        return "others", info.name
    names = info.site.split(", ")
    stack, _, role = names[0].partition(".")
    if not role.startswith("layers."):
        return stack, ", ".join(name.partition(".")[2] for name in names)
    number = role.split(".")[1]
    return f"{stack} layer {number}", ", ".join(name.split(".", 3)[3] for name in names)


def _prefix(names: Sequence[str]) -> str:
    """The parts that several names begin with, the dot behind them included."""
    parts = zip(*(name.split(".")[:-1] for name in names), strict=False)
    shared = takewhile(lambda part: len(set(part)) == 1, parts)
    return "".join(f"{part[0]}." for part in shared) if len(names) > 1 else ""


def _natural(text: str) -> str:
    """A key that sorts "layer 9" before "layer 10"."""
    return _DIGITS.sub(lambda digits: digits[0].zfill(_PLACES), text)


_ORDER: Final[dict[Column, Callable[[TensorRow], Any]]] = {
    "name": lambda row: row.order,
    "role": lambda row: _natural(row.role),
    "shape": lambda row: row.n_elements,
    "dtype": lambda row: row.dtype,
    "size": lambda row: row.n_bytes,
    "file": lambda row: row.file,
}


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
