"""LoRA adapters as the peft library saves them, merged with the model they change: W + s B A, computed when W is read.

Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1: s = alpha / r for A [r, inputs] and
B [outputs, r]. With rslora s = alpha / sqrt(r) (Kalajdzievski 2023). To W that is stored [inputs, outputs], and to
embedding tables, the transpose is added. Nothing is written, and nothing held beside what is being read.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from core_model.checkpoint.files import SafetensorsFile, is_file_name
from core_model.checkpoint.folder import Location, locate
from core_model.checkpoint.header import Entry
from core_model.checkpoint.hub_cache import find_cached
from core_model.checkpoint.json_text import read_json
from core_model.checkpoint.shards import TensorStore
from core_model.checkpoint.wording import counted, shown, some_of
from core_model.errors import CheckpointError
from core_model.pieces import Numbers
from core_model.results import Fact, FloatArray

Number = TypeVar("Number", bound=np.generic)

_WRAPPER = "base_model.model."
_FACTOR = re.compile(r"(?P<module>.+)\.lora_(?P<table>embedding_)?(?P<factor>[AB])(\.\w+)?(\.weight)?")
_WHOLE = re.compile(r"\.(modules_to_save\.\w+|base_layer)(?=\.)")
_MODULE_NAME = re.compile(r"[\w.]+", re.ASCII)
_LONGEST_PREFIX = 4
_UNREAD = {
    "use_dora": "DoRA",
    "use_qalora": "QA-LoRA",
    "lora_bias": "LoRA with biases of its own",
    "target_parameters": "LoRA on bare parameters",
    "layer_replication": "LoRA with repeated layers",
    "alora_invocation_tokens": "activated LoRA",
    "trainable_token_indices": "LoRA with trainable tokens",
}
"""Keys of an adapter_config.json that ask for more than W + s B A, and what people call it."""
_CHANGED_BASE = ("pissa", "olora", "corda", "loftq")
"""Initialisations that change the base's weights too: what they were changed to is not in the adapter."""


@dataclass(frozen=True, kw_only=True)
class AdapterConfig:
    """What an adapter_config.json says, as far as merging needs it. `alphas` are by the end of a module's name."""

    alpha: float
    by_root: bool
    transposed: bool
    alphas: Mapping[str, float] = field(default_factory=dict)

    def scale(self, module: str, rank: int) -> float:
        """What the product of the two factors of a module is multiplied by."""
        own = (alpha for name, alpha in self.alphas.items() if f".{module}".endswith(f".{name}"))
        return next(own, self.alpha) / (math.sqrt(rank) if self.by_root else rank)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is added to one stored weight: `scale` times B A, tensors of the adapter; `transposed`: times (B A)^T."""

    a: str
    b: str
    scale: float
    transposed: bool

    def factors(self, adapter: SafetensorsFile) -> tuple[FloatArray, FloatArray]:
        """Two factors [rows, r] and [r, columns] of it, the scale in the first."""
        a, b = adapter.read(self.a), adapter.read(self.b)
        left, right = (a.T, b.T) if self.transposed else (b, a)
        return np.float32(self.scale) * left, right


class ChangedFile(SafetensorsFile):
    """A file of the base whose weights are read with the adapter's changes; without what the adapter stores whole."""

    def __init__(
        self, path: Path, adapter: SafetensorsFile, changes: Mapping[str, Change], replaced: Collection[str]
    ) -> None:
        super().__init__(path)
        self._adapter, self._changes = adapter, changes
        self._kept = {name: entry for name, entry in super().entries.items() if name not in replaced}

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The tensors that still come from here."""
        return self._kept

    def pieces(self, name: str, begin: int = 0, end: int | None = None) -> Iterator[tuple[slice, FloatArray]]:
        """The merged values."""
        return self._changed(name, super().pieces(name, begin, end))

    def exact_pieces(self, name: str, begin: int = 0, end: int | None = None) -> Iterator[tuple[slice, Numbers]]:
        """The merged values in the format of the base."""
        return self._changed(name, super().exact_pieces(name, begin, end))

    def _changed(
        self, name: str, pieces: Iterator[tuple[slice, npt.NDArray[Number]]]
    ) -> Iterator[tuple[slice, npt.NDArray[Number]]]:
        change = self._changes.get(name)
        if change is None:
            yield from pieces
            return
        left, right = change.factors(self._adapter)
        n_columns = right.shape[1]
        for part, values in pieces:
            first, last = part.start // n_columns, (part.stop - 1) // n_columns + 1
            begin = part.start - first * n_columns
            added = (left[first:last] @ right).ravel()[begin : begin + len(values)]
            yield part, np.add(values, added).astype(values.dtype)


class WholeTensors(SafetensorsFile):
    """The tensors an adapter stores whole, such as a new output head, under the names they have in the base."""

    def __init__(self, path: Path, names: Mapping[str, str], factors: SafetensorsFile) -> None:
        """`names` maps names in the base to those stored; `factors` is closed with this file."""
        super().__init__(path)
        self._whole = {name: super(WholeTensors, self).entries[stored] for name, stored in names.items()}
        self._factors = factors

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The tensors by their names in the base."""
        return self._whole

    def close(self) -> None:
        """Release the file, and the factors."""
        super().close()
        self._factors.close()


def stated_base(location: Location) -> str | None:
    """The model that an adapter says it belongs to, by name or path."""
    assert location.adapter_config is not None
    base = read_json(location.adapter_config).get("base_model_name_or_path")
    return base if isinstance(base, str) and base else None


def find_base(location: Location) -> Path | None:
    """Where the base of an adapter lies: beside it, or in the local cache of the Hub; None when in neither."""
    base = stated_base(location)
    if base is None:
        return None
    name = re.split(r"[/\\]", base.rstrip("/\\"))[-1]
    if is_file_name(name):
        for beside in (location.folder / name, location.folder.parent / name):
            if beside.is_dir() and not beside.samefile(location.folder):
                return beside
    return find_cached(base)


@dataclass(frozen=True, kw_only=True)
class Merged:
    """A base with an adapter's changes: where its config lies, its tensors, what was noticed, what was merged."""

    location: Location
    store: TensorStore
    notes: tuple[str, ...]
    fact: Fact


def open_merged(location: Location, base: Path) -> Merged:
    """The base with the adapter's changes in all that is read of it.

    CheckpointError when the adapter asks for more than LoRA, or does not fit the base.
    """
    assert location.adapter_config is not None
    config = _read_config(location, read_json(location.adapter_config))
    place = locate(base)
    if place.adapter_config is not None:
        raise CheckpointError(f"{place.name} is an adapter too: give the folder of the model itself", path=base)
    plain, notes = place.open()
    files: list[SafetensorsFile] = []
    try:
        factors = SafetensorsFile(_adapter_file(location))
        files.append(factors)
        changes, whole = _plan(location.name, place.name, config, plain.entries, factors.entries)
        changed = [ChangedFile(path, factors, changes, whole.keys()) for path in plain.files]
        files.extend(changed)
        store = TensorStore(
            (*changed, WholeTensors(factors.path, whole, factors)),
            {name: plain.file_of(name) for name in plain.entries if name not in whole},
        )
    except BaseException:
        for file in files:
            file.close()
        raise
    finally:
        plain.close()
    told = f"{location.name}: LoRA, merged into {counted(len(changes), 'weight')}"
    if whole:
        told += f"; stored whole: {some_of(whole)}"
    named = replace(place, name=f"{place.name} + {location.name}", path=location.path)
    return Merged(location=named, store=store, notes=notes, fact=Fact(name="adapter", value=told, origin="stated"))


def _adapter_file(location: Location) -> Path:
    """The one file of weights an adapter has."""
    if len(location.weights) != 1:
        raise CheckpointError(
            f"{location.name} is an adapter in several files, which peft never writes: open one", path=location.path
        )
    return location.weights[0]


def _read_config(location: Location, document: Mapping[str, Any]) -> AdapterConfig:
    """The config of plain LoRA; CheckpointError names what else it asks for."""

    def refused(what: str) -> CheckpointError:
        return CheckpointError(
            f"{location.name} is an adapter by {what}: only plain LoRA is merged here; merge it with peft "
            "(merge_and_unload) and open what that saves",
            path=location.adapter_config,
        )

    if (kind := document.get("peft_type", "LORA")) != "LORA":
        raise refused(shown(kind))
    for key, what in _UNREAD.items():
        if document.get(key):
            raise refused(f"{what} ({key})")
    start = document.get("init_lora_weights")
    if isinstance(start, str) and start.lower().startswith(_CHANGED_BASE):
        raise refused(f"{shown(start)}, which changes the base's weights before training")
    alphas = document.get("alpha_pattern") or {}
    if not isinstance(alphas, dict) or not all(map(_MODULE_NAME.fullmatch, alphas)):
        raise refused("an alpha_pattern that is more than names of modules")
    return AdapterConfig(
        alpha=_number(location, "lora_alpha", document.get("lora_alpha", 8)),
        by_root=document.get("use_rslora") is True,
        transposed=document.get("fan_in_fan_out") is True,
        alphas={name: _number(location, f"alpha_pattern.{name}", alpha) for name, alpha in alphas.items()},
    )


def _number(location: Location, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e9:
        raise CheckpointError(
            f"{shown(key)} is {shown(repr(value))} in adapter_config.json: a number was expected",
            path=location.adapter_config,
        )
    return float(value)


def _plan(
    adapter: str, base: str, config: AdapterConfig, held: Mapping[str, Entry], stored: Mapping[str, Entry]
) -> tuple[dict[str, Change], dict[str, str]]:
    """The change of each weight of the base, and the tensors the adapter stores whole, by their names in the base."""
    find = _finder(held)
    factors: dict[tuple[str, bool], dict[str, str]] = defaultdict(dict)
    whole: dict[str, str] = {}
    for name in stored:
        short = name.removeprefix(_WRAPPER)
        if found := _FACTOR.fullmatch(short):
            factors[found["module"], bool(found["table"])][found["factor"]] = name
        elif "lora_" in short:
            raise CheckpointError(f"{adapter} holds {shown(name)}, which plain LoRA has not", tensor=name)
        else:
            plain = _WHOLE.sub("", short)
            whole[find(plain) or plain] = name
    if not factors:
        raise CheckpointError(f"{adapter} holds no LoRA weights (lora_A, lora_B): download the adapter again")
    changes: dict[str, Change] = {}
    for (module, is_table), pair in factors.items():
        target = find(f"{module}.weight")
        if target is None:
            raise CheckpointError(
                f"{adapter} changes {shown(module)}, which {base} has not: give the model the adapter was trained on"
            )
        if pair.keys() != {"A", "B"}:
            raise CheckpointError(
                f"{adapter} holds only one of lora_A and lora_B of {shown(module)}: download it again"
            )
        is_turned = is_table or config.transposed
        a, b = stored[pair["A"]], stored[pair["B"]]
        _require_fit(adapter, target, held[target].shape, a.shape, b.shape, transposed=is_turned)
        scale = config.scale(module, a.shape[0])
        changes[target] = Change(a=pair["A"], b=pair["B"], scale=scale, transposed=is_turned)
    return changes, whole


def _require_fit(
    adapter: str, target: str, weight: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...], *, transposed: bool
) -> None:
    """Refuse factors whose product has not the weight's shape."""
    if len(a) == len(b) == 2 and a[0] == b[1] > 0 and weight == ((a[1], b[0]) if transposed else (b[0], a[1])):
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
