"""Holding a config against a file: which stored tensor is which of ours, and what is missing, left over or mis-shaped.

Names and shapes only: nothing is read or allocated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from core_model.checkpoint.families.family import Assignment, NameTable, Weights, assignments
from core_model.config import ModelConfig
from core_model.shapes import Shape, tensor_shapes
from core_model.wording import counted, shown, some_of


@dataclass(frozen=True, kw_only=True)
class Match:
    """The outcome, in names of the file; absent tensors by the name they would have there.

    `shapes` are those of our tensors. `misshaped` gives the shapes found and expected. `unused` are weights of a head
    this model does not use; `tied` are lines such as "lm_head.weight = transformer.wte.weight". `overruled` are tensors
    that should be copies of another and hold other values, and that other, which is used.
    """

    assignments: tuple[Assignment, ...]
    shapes: Mapping[str, Shape]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    misshaped: Mapping[str, tuple[Shape, Shape]]
    unused: tuple[str, ...]
    tied: tuple[str, ...]
    overruled: Mapping[str, str]

    @property
    def sites(self) -> dict[str, str]:
        """Our name for each stored tensor that is used; several of ours for a fused one."""
        return {name: ", ".join(line.ours) for line in self.assignments for name in line.theirs}

    @property
    def problem(self) -> str | None:
        """Why these weights cannot make the model, as one sentence; None when they can."""
        if self.missing:
            if prefix := self._foreign_prefix():
                return (
                    f"all names in the file begin with {shown(prefix)}, which this family's do not: save the weights "
                    "again without it"
                )
            verb = "is" if len(self.missing) == 1 else "are"
            return (
                f"{counted(len(self.missing), 'tensor')} the config asks for {verb} missing from the file "
                f"({some_of(self.missing)}): check that config.json belongs to these weights and that no file is absent"
            )
        if self.misshaped:
            told = [
                f"{name} is {list(found)}, expected {list(expected)}"
                for name, (found, expected) in self.misshaped.items()
            ]
            return (
                f"the file has {counted(len(told), 'tensor')} of another shape than the config asks for "
                f"({some_of(told)}): check that config.json belongs to these weights"
            )
        return None

    def _foreign_prefix(self) -> str | None:
        """What all unused names begin with, where what is missing lies behind it: a module the model was a part of."""
        first = {name.partition(".")[0] for name in self.unexpected}
        ends = {name.split(".", n_parts)[-1] for name in self.unexpected for n_parts in (1, 2)}
        return f"{first.pop()}." if len(first) == 1 and ends.issuperset(self.missing) else None


def match(table: NameTable, config: ModelConfig, weights: Weights) -> Match:
    """The table for this config, held against the tensors of a file."""
    shapes = tensor_shapes(config)
    n_layers = max(stack.n_layers for stack in config.stacks.values())
    rows = table.rows_for(config, weights.shapes)
    placed = tuple(_placed(line, weights) for line in assignments(rows, shapes, n_layers))
    lines = tuple(replace(line, also=_true_copies(line, weights)) for line in placed)
    _require_complete(lines, shapes)
    used = {name for line in lines for name in line.theirs}
    copies = {name for line in lines for name in line.also}
    overruled = {
        copy: line.theirs[0] for line in placed for copy in line.also if copy in weights and copy not in used | copies
    }
    others = [short for short in weights.stored if short not in used | copies | overruled.keys()]
    unused = _matching(table.unused, others)
    known = {*unused, *_matching(table.buffers, others)}

    def named(shorts: Iterable[str]) -> tuple[str, ...]:
        return tuple(full_name(table, weights, short) for short in shorts)

    return Match(
        assignments=tuple(replace(line, theirs=named(line.theirs), also=named(line.also)) for line in lines),
        shapes=shapes,
        missing=named(short for line in lines for short in line.theirs if short not in weights),
        unexpected=(*named(short for short in others if short not in known), *weights.doubles),
        misshaped={
            full_name(table, weights, short): (weights.shapes[short], expected)
            for line in lines
            for short, expected in zip(line.theirs, _expected_shapes(line, shapes), strict=True)
            if short in weights and weights.shapes[short] != expected
        },
        unused=named(unused),
        tied=tuple(
            f"{full_name(table, weights, copy)} = {full_name(table, weights, line.theirs[0])}"
            for line in lines
            for copy in line.also
        ),
        overruled={
            full_name(table, weights, copy): full_name(table, weights, used) for copy, used in overruled.items()
        },
    )


def _require_complete(lines: Iterable[Assignment], shapes: Mapping[str, Shape]) -> None:
    """A table names every weight of ours exactly once; anything else is a mistake in the table."""
    times = Counter(name for line in lines for name in line.ours)
    wrong = [name for name in {*shapes, *times} if times[name] != 1 or name not in shapes]
    assert not wrong, f"the name table does not name exactly once: {some_of(sorted(wrong))}"


def full_name(table: NameTable, weights: Weights, short: str) -> str:
    """The name in the file of a tensor of the table, or what it would be called there."""
    if short in weights:
        return weights.stored[short]
    return short if short.startswith(table.roots) else f"{weights.prefix}{short}"


def _placed(line: Assignment, weights: Weights) -> Assignment:
    """The line; where its tensor is absent and a copy under another name is there, with the two exchanged."""
    (first, *rest) = line.theirs
    stand_in = next((copy for copy in line.also if copy in weights), None)
    if first in weights or stand_in is None:
        return line
    also = tuple(first if copy == stand_in else copy for copy in line.also)
    return replace(line, theirs=(stand_in, *rest), also=also)


def _true_copies(line: Assignment, weights: Weights) -> tuple[str, ...]:
    """The other names of a line whose tensors are absent or hold what its own does."""
    own = weights.stored.get(line.theirs[0])
    return tuple(
        copy
        for copy in line.also
        if own is None or copy not in weights or not weights.differ(weights.stored[copy], own)
    )


def _expected_shapes(line: Assignment, shapes: Mapping[str, Shape]) -> tuple[Shape, ...]:
    return line.conversion.their_shapes([shapes[name] for name in line.ours])


def _matching(patterns: tuple[str, ...], names: Iterable[str]) -> list[str]:
    """The names that one of the patterns describes in full."""
    return [name for name in names if any(re.fullmatch(pattern, name) for pattern in patterns)]
