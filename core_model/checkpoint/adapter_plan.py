"""Which weights of a base a LoRA adapter changes, how, and which it replaces: by names and shapes alone."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from core_model.checkpoint.adapter_config import AdapterConfig
from core_model.checkpoint.families import FAMILIES
from core_model.checkpoint.families.conversion import Joined
from core_model.checkpoint.folder import Location
from core_model.checkpoint.header import Entry
from core_model.checkpoint.merging import Change
from core_model.checkpoint.reading import read_checkpoint
from core_model.checkpoint.shards import TensorStore
from core_model.errors import CheckpointError
from core_model.shapes import Shape
from core_model.wording import shown

_WRAPPER = "base_model.model."
_FACTOR = re.compile(r"(?P<module>.+)\.lora_(?P<table>embedding_)?(?P<factor>[AB])(\.\w+)?(\.weight)?")
_MAGNITUDE = re.compile(r"(?P<module>.+)\.lora_magnitude_vector(\.\w+)?(\.weight)?")
_WHOLE = re.compile(r"\.(modules_to_save\.\w+|base_layer)(?=\.)")
_WRAPPED = re.compile(r"\.(modules_to_save|original_module)(?=\.\w+$)")
"""Parts of a module that peft wraps; it may save them too, beside the module itself."""
_LONGEST_PREFIX = 4


@dataclass(frozen=True, kw_only=True)
class Base:
    """What is known of a base: the shapes of its tensors, and what its family says of them where it has a known one.

    `turned` says which weights are stored [inputs, outputs]. `tied` gives the table that a head without weights of its
    own reads, by the name the head's would have.
    """

    shapes: Mapping[str, Shape]
    turned: Mapping[str, bool] = field(default_factory=dict)
    tied: Mapping[str, str] = field(default_factory=dict)


def known_base(location: Location, store: TensorStore) -> Base:
    """What its files tell of a base; only shapes where they make no known model."""
    shapes = {name: entry.shape for name, entry in store.entries.items()}
    reading = read_checkpoint(location, store, {})
    family = next((family for family in FAMILIES if family.key == reading.family), None)
    if family is None or reading.match is None:
        return Base(shapes=shapes)
    lines, roots = reading.match.assignments, family.names.roots
    joined = ((line.theirs, line.conversion) for line in lines if isinstance(line.conversion, Joined))
    heads = ((copy, line.theirs[0]) for line in lines for copy in line.also if copy.startswith(roots))
    return Base(
        shapes=shapes,
        turned={name: conversion.transposed for theirs, conversion in joined for name in theirs},
        tied={head: table for head, table in heads if head not in shapes and len(shapes.get(table, ())) == 2},
    )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What merging does, by names of the merged model.

    `whole` gives them for the tensors that the adapter stores whole. `parted` are heads tied in the base that get
    weights of their own, and the table these are copied from.
    """

    changes: Mapping[str, Change]
    whole: Mapping[str, str]
    parted: Mapping[str, str]


def plan_merging(adapter: str, named: str, config: AdapterConfig, base: Base, stored: Mapping[str, Entry]) -> Plan:
    """The plan for the tensors an adapter has `stored`; CheckpointError where they do not fit the base, so `named`."""
    found, find_name = _sorted(adapter, config, stored), _finder({*base.shapes, *base.tied})
    whole = {name: find_name(plain) or plain for name, plain in found.whole.items()}
    shapes = {**base.shapes, **{own: stored[name].shape for name, own in whole.items()}}
    shapes = {**{head: shapes[table] for head, table in base.tied.items()}, **shapes}
    find = _finder(shapes)
    changes: dict[str, Change] = {}
    for (module, is_table), pair in found.factors.items():
        target = find(f"{module}.weight")
        if target is None:
            raise CheckpointError(
                f"{adapter} changes {shown(module)}, which {named} has not: give the model the adapter was trained on"
            )
        missing = [f"lora_{factor}" for factor in "AB" if factor not in pair]
        missing += ["lora_magnitude_vector"] if config.has_magnitudes and module not in found.magnitudes else []
        if missing:
            raise CheckpointError(f"{adapter} holds no {missing[0]} of {shown(module)}: download it again")
        a, b = stored[pair["A"]].shape, stored[pair["B"]].shape
        stated = base.turned.get(target, config.transposed)
        is_turned = is_table or _is_turned(shapes[target], a, b, stated=stated)
        magnitude = found.magnitudes.get(module)
        _require_fit(adapter, target, shapes[target], a, b, transposed=is_turned)
        if magnitude is not None and math.prod(stored[magnitude].shape) != b[0]:
            raise CheckpointError(
                f"{adapter} has {list(stored[magnitude].shape)} for the lengths of {b[0]} outputs: download it again",
                tensor=magnitude,
            )
        scale = config.scale(module, a[0])
        changes[target] = Change(a=pair["A"], b=pair["B"], scale=scale, transposed=is_turned, magnitude=magnitude)
    return Plan(changes=changes, whole=whole, parted=_parted(config, base, changes, set(whole.values())))


def _parted(config: AdapterConfig, base: Base, changes: Collection[str], whole: Collection[str]) -> Mapping[str, str]:
    """The tied heads of which either side is changed alone.

    peft wraps modules, not weights: what it adds to one side never reaches the other.
    """
    return {
        head: table
        for head, table in base.tied.items()
        if head not in whole and (head in changes or table in changes or (table in whole and config.saves(table)))
    }


@dataclass(kw_only=True)
class _Sorted:
    """What an adapter stores, by the module it changes: factors ("A", "B"), magnitudes, and tensors stored whole."""

    factors: dict[tuple[str, bool], dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    magnitudes: dict[str, str] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)


def _sorted(adapter: str, config: AdapterConfig, stored: Collection[str]) -> _Sorted:
    found = _Sorted()
    for name in stored:
        short = name.removeprefix(_WRAPPER)
        if factor := _FACTOR.fullmatch(short):
            found.factors[factor["module"], bool(factor["table"])][factor["factor"]] = name
        elif config.has_magnitudes and (length := _MAGNITUDE.fullmatch(short)):
            found.magnitudes[length["module"]] = name
        elif "lora_" in short:
            raise CheckpointError(f"{adapter} holds {shown(name)}, which its config does not speak of", tensor=name)
        elif _WRAPPED.sub("", name) not in stored or not _WRAPPED.search(name):
            found.whole[name] = _WHOLE.sub("", short)
    if not found.factors:
        raise CheckpointError(f"{adapter} holds no LoRA weights (lora_A, lora_B): download the adapter again")
    return found


def _is_turned(weight: Shape, a: Shape, b: Shape, *, stated: bool) -> bool:
    """Whether a weight is stored [inputs, outputs]: as is `stated`, where that fits."""
    return stated if _fits(weight, a, b, transposed=stated) else not stated


def _fits(weight: Shape, a: Shape, b: Shape, *, transposed: bool) -> bool:
    """Whether the product of the factors has the weight's shape."""
    if not len(a) == len(b) == 2 or not a[0] == b[1] > 0:
        return False
    return weight == ((a[1], b[0]) if transposed else (b[0], a[1]))


def _require_fit(adapter: str, target: str, weight: Shape, a: Shape, b: Shape, *, transposed: bool) -> None:
    """Refuse factors whose product has not the weight's shape."""
    if _fits(weight, a, b, transposed=transposed):
        return
    raise CheckpointError(
        f"{adapter} has factors {list(b)} and {list(a)} for {shown(target)}, which is {list(weight)}: "
        "give the model the adapter was trained on",
        tensor=target,
    )


def _finder(names: Collection[str]) -> Callable[[str], str | None]:
    """Finds a tensor by its name, where either side may have a prefix more, such as "transformer."."""
    by_end: dict[str, list[str]] = defaultdict(list)
    for name in names:
        for end in _ends(name):
            by_end[end].append(name)

    def find(wanted: str) -> str | None:
        if wanted in names:
            return wanted
        if len(longer := by_end.get(wanted, [])) == 1:
            return longer[0]
        return next((end for end in _ends(wanted) if end in names), None)

    return find


def _ends(name: str) -> Iterator[str]:
    """The name without its first part, its first two parts, and so on."""
    for _ in range(_LONGEST_PREFIX):
        _, _, name = name.partition(".")
        if name:
            yield name
