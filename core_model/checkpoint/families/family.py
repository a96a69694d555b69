"""What a family is: a table between someone else's checkpoints and ours, read in both directions.

A family is one file with one `FAMILY` record and one row in `families.FAMILIES`. It says which keys a config.json has,
what ModelConfig they mean, what the tensors are called, and what else may lie in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from core_model.checkpoint.families.conversion import SAME, Conversion
from core_model.config import HeadSpec, ModelConfig
from core_model.errors import ConfigError
from core_model.shapes import Shape

WRAPPERS = ("module.", "_orig_mod.", "base_model.model.")
"""What DistributedDataParallel, torch.compile and PEFT put before every name."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a name table: their tensors, ours, and the conversion between them.

    `{i}` stands for the layer; a final `*` for weight and bias. `also` are other names the same tensor may be stored
    under: copies of it are ignored, and one of them stands in when it is absent.
    """

    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    conversion: Conversion = SAME
    also: tuple[str, ...] = ()


def row(theirs: str, *ours: str, conversion: Conversion = SAME, also: tuple[str, ...] = ()) -> Row:
    """A line with one tensor of theirs."""
    return Row(theirs=(theirs,), ours=ours, conversion=conversion, also=also)


QUERY_KEY_VALUE = ("attention.query.*", "attention.key.*", "attention.value.*")
"""What a fused projection holds, in the usual order."""


def layer_rows(
    layer: str,
    names: Mapping[str, str | tuple[str, ...]],
    conversion: Conversion = SAME,
    *,
    ours: str = "decoder.layers.{i}",
) -> tuple[Row, ...]:
    """Lines of a name table from `names` within a layer, theirs to ours, one or several. `layer` begins theirs."""
    return tuple(
        row(
            f"{layer}.{name}",
            *(f"{ours}.{part}" for part in ((parts,) if isinstance(parts, str) else parts)),
            conversion=conversion,
        )
        for name, parts in names.items()
    )


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """What writing a config gives: the value of each key, and the class of transformers that reads it.

    `stored` are tensors that will be in the file, where reading the config asks for them.
    """

    keys: Any
    architecture: str
    stored: Mapping[str, Shape] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class NameTable:
    """What a family's tensors are called.

    Names in `rows`, `buffers` and `unused` are without the optional `prefixes`; `roots` begin names that never have
    one. The first prefix is written before a model with a head, or that of `written_prefixes` for its task. `spellings`
    are (pattern, replacement) for names that older versions wrote otherwise. `buffers` (patterns) hold no weights;
    `unused` (patterns) are weights of a head that this model does not use. `dialects` are (pattern, rows) to read a
    file by where it has a name with the pattern in it. `anchor` is a pattern of a name of the family that may stand
    behind any prefix; names that have another are then of something else in the file.
    """

    rows: Callable[[ModelConfig], Sequence[Row]]
    prefixes: tuple[str, ...] = ()
    written_prefixes: Mapping[str, str] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    spellings: tuple[tuple[str, str], ...] = ()
    buffers: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    dialects: tuple[tuple[str, Callable[[ModelConfig], Sequence[Row]]], ...] = ()
    anchor: str = ""

    def rows_for(self, config: ModelConfig, names: Iterable[str]) -> Sequence[Row]:
        """The lines to read a file with these names by."""
        found = tuple(names)
        for pattern, rows in self.dialects:
            if any(re.search(pattern, name) for name in found):
                return rows(config)
        return self.rows(config)

    def written_prefix(self, task: str | None) -> str:
        """What the names of a model with a head for a task begin with; nothing without a head."""
        return self.written_prefixes.get(task, next(iter(self.prefixes), "")) if task else ""


class Heads(Protocol):
    """The output heads of a family, as far as names go."""

    @property
    def roots(self) -> tuple[str, ...]: ...

    def rows(self, head: HeadSpec | None) -> tuple[Row, ...]: ...


def name_table(
    heads: Heads,
    *lines: Row,
    of_config: Callable[[ModelConfig], Iterable[Row]] = lambda config: (),
    **others: Any,
) -> NameTable:
    """A table of the heads, these lines, and those that depend on the config; `others` are more of its fields."""

    def rows(config: ModelConfig) -> tuple[Row, ...]:
        return (*heads.rows(config.head), *lines, *of_config(config))

    return NameTable(rows=rows, **{"roots": heads.roots, **others})


@dataclass(frozen=True, kw_only=True)
class Family:
    """One family of checkpoints.

    `keys` is a dataclass of the config.json keys that matter. `read` makes a ModelConfig of them and of what the file
    holds; `write` is its inverse, checked by reading back. `sizes` gives keys that shapes tell and config.json lacks,
    `implied` those that others of its keys imply, as a well-known name does.
    `places` names, for each fact of a model in our words, its key, dotted inside a part of the document.
    `architectures` maps transformers' classes to the task of their head. `aliases` are other names that a config.json
    may have for a key, and the key. `markers` are patterns of names that, all found, tell the family of a file without
    a config, where its shapes `fit` as well.
    `tied_by_default` is what a config without tie_word_embeddings means. `layer_counts` are further keys that say how
    many layers, each with weights of its own, a file must hold; `shares_layers` where the layers run may be more.
    `left_out` are patterns of names whose tensors are not the model's though they are stored, which only the keys tell.
    `remarks` are sentences on what of the keys or the file was not taken as it stands there.
    `document` is a file beside the weights that states the keys and counts before config.json; `part` a key of
    config.json, or of the weights file's own header, under which they stand.
    """

    key: str
    label: str
    model_types: tuple[str, ...]
    architectures: Mapping[str, str | None]
    keys: type
    read: Callable[[Any, Weights], ModelConfig]
    write: Callable[[ModelConfig], Foreign]
    sizes: Callable[[Weights], Mapping[str, object]]
    implied: Callable[[Mapping[str, object], Weights], Mapping[str, object]] = field(default=lambda stated, weights: {})
    places: Mapping[str, str]
    names: NameTable
    aliases: Mapping[str, str] = field(default_factory=dict)
    markers: tuple[str, ...] = ()
    fit: Callable[[Weights], bool] = field(default=lambda weights: True)
    tied_by_default: bool = True
    layer_counts: tuple[str, ...] = ()
    shares_layers: bool = False
    left_out: Callable[[Any], Sequence[str]] = field(default=lambda keys: ())
    remarks: Callable[[Any, Weights, ModelConfig], Sequence[str]] = field(default=lambda keys, weights, config: ())
    document: str | None = None
    part: str | None = None

    def architecture_for(self, task: str | None) -> str:
        """The class of transformers whose head has a task; None: no head. ConfigError when the family has none such."""
        for name, known in self.architectures.items():
            if known == task:
                return name
        what = "without an output head" if task is None else f"with an output head of the kind {task.replace('_', ' ')}"
        raise ConfigError(f"{self.label} has no model {what}")

    def renamed(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A config.json with its keys under the names that `keys` has; an alias wins, as in transformers."""
        named = {key: document[name] for name, key in self.aliases.items() if document.get(name) is not None}
        return {**document, **named}


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The tensors of a file under the names a family's table uses, and the questions reading a config may ask of them.

    `stored` maps table names to names in the file; names that say the same as another, and others of no use, are in
    `doubles`. `prefix` is
    what was taken off. `differ` compares the values of two tensors of the file, `values` reads those of one.
    """

    shapes: Mapping[str, Shape]
    stored: Mapping[str, str]
    doubles: tuple[str, ...] = ()
    architecture: str | None = None
    prefix: str = ""
    differ: Callable[[str, str], bool] = field(default=lambda first, second: False)
    values: Callable[[str], Sequence[float]] = field(default=lambda name: ())

    def __contains__(self, name: str) -> bool:
        return name in self.shapes

    def size(self, name: str, axis: int) -> int | None:
        """The length of one axis of a tensor; None when the file has no such axis."""
        shape = self.shapes.get(name, ())
        return shape[axis] if axis < len(shape) else None

    def without(self, patterns: Sequence[str]) -> Weights:
        """The same without the tensors whose names are as one of the patterns in full; those are of no use to it."""
        hidden = [name for name in self.stored if any(re.fullmatch(pattern, name) for pattern in patterns)]
        return replace(
            self,
            shapes={name: shape for name, shape in self.shapes.items() if name not in hidden},
            stored={name: full for name, full in self.stored.items() if name not in hidden},
            doubles=(*self.doubles, *(self.stored[name] for name in hidden)),
        )

    def n_layers(self, pattern: str) -> int:
        """How many layers in a row, from 0, have the tensor that a pattern with {i} names."""
        count = 0
        while pattern.format(i=count) in self.shapes:
            count += 1
        return count

    def ties(self, head: str, table: str, *, stated: bool | None, default: bool) -> bool:
        """Whether the output head is the token table: the config says so, or the file has no head of its own.

        A head that is stored and differs from the table is used as stored, whatever the config says.
        """
        if head not in self:
            return stated is not False
        tied = default if stated is None else stated
        return tied and (table not in self or not self.differ(self.stored[head], self.stored[table]))

    def task(self, family: Family, evidence: Mapping[str, str], default: str | None = None) -> str | None:
        """What the output head is for: as the architecture says, else the first `evidence` (task -> tensor) stored."""
        if self.architecture is not None and self.architecture in family.architectures:
            return family.architectures[self.architecture]
        return next((task for task, name in evidence.items() if name in self), default)


def read_sizes(axes: Mapping[str, tuple[str, int]], **layers: str) -> Callable[[Weights], Mapping[str, object]]:
    """The `sizes` of a family: by key, the tensor and the axis that is as long; and where a key counts `layers`, the
    name, with {i}, of a tensor that every layer has.
    """

    def sizes(weights: Weights) -> Mapping[str, object]:
        lengths = {key: weights.size(name, axis) for key, (name, axis) in axes.items()}
        return {**lengths, **{key: weights.n_layers(pattern) or None for key, pattern in layers.items()}}

    return sizes


def weights_of(
    table: NameTable,
    shapes: Mapping[str, Shape],
    *,
    architecture: str | None = None,
    differ: Callable[[str, str], bool] | None = None,
    values: Callable[[str], Sequence[float]] | None = None,
) -> Weights:
    """A file's tensors under the names of a table: wrappers and prefixes off, old spellings replaced."""
    stored: dict[str, str] = {}
    doubles: list[str] = []
    prefix = ""
    anchored = _anchored_prefix(table, shapes)
    for name in shapes:
        short, begin = _short_name(table, name, anchored)
        prefix = prefix or begin
        if short in stored:
            doubles.append(name)
        else:
            stored[short] = name
    return Weights(
        shapes={short: shapes[name] for short, name in stored.items()},
        stored=stored,
        doubles=tuple(doubles),
        architecture=architecture,
        prefix=prefix,
        differ=differ or (lambda first, second: False),
        values=values or (lambda name: ()),
    )


def unwrapped(name: str) -> str:
    """A tensor's name without what wrappers put before it."""
    while found := next((wrapper for wrapper in WRAPPERS if name.startswith(wrapper)), None):
        name = name.removeprefix(found)
    return name


def _anchored_prefix(table: NameTable, names: Iterable[str]) -> str:
    """What stands before the table's anchor in the first name that ends in it."""
    found = (re.fullmatch(rf"(.*\.)?{table.anchor}", unwrapped(name)) for name in names) if table.anchor else ()
    return next((place[1] or "" for place in found if place), "")


def _short_name(table: NameTable, name: str, anchored: str) -> tuple[str, str]:
    """The table's name of a stored tensor, and what was taken off its beginning."""
    rest = unwrapped(name)
    if not rest.startswith(anchored):
        return f"/{rest}", ""
    rest = rest.removeprefix(anchored)
    if found := next((prefix for prefix in table.prefixes if rest.startswith(prefix)), None):
        rest = rest.removeprefix(found)
    taken = name[: len(name) - len(rest)]
    for pattern, replacement in table.spellings:
        rest = re.sub(pattern, replacement, rest)
    return rest, taken


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """One row for one layer: their full names, ours, and the conversion."""

    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    conversion: Conversion
    also: tuple[str, ...] = ()


def assignments(rows: Sequence[Row], shapes: Mapping[str, Shape], n_layers: int) -> Iterator[Assignment]:
    """The rows for every layer, weight and bias that a model of these shapes has."""
    for line in rows:
        layers = range(n_layers) if any("{i}" in name for name in line.ours) else (0,)
        for i in layers:
            for kind in ("weight", "bias") if line.ours[0].endswith("*") else ("",):
                ours = _filled(line.ours, i, kind)
                if ours[0] in shapes:
                    yield Assignment(
                        theirs=_filled(line.theirs, i, kind),
                        ours=ours,
                        conversion=line.conversion,
                        also=_filled(line.also, i, kind),
                    )


def _filled(names: tuple[str, ...], layer: int, kind: str) -> tuple[str, ...]:
    return tuple(
        name.replace("{i}", str(layer)).removesuffix("*") + (kind if name.endswith("*") else "") for name in names
    )
