"""LoRA adapters as the peft library saves them, merged with the model they change: W + s B A, computed when W is read.

Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1: s = alpha / r for A [r, inputs] and
B [outputs, r]. With rslora s = alpha / sqrt(r) (Kalajdzievski 2023). To W that is stored [inputs, outputs], and to
embedding tables, the transpose is added. DoRA (Liu et al. 2024, eq. 5) gives the weights of each output a learned
length m: m (W + s B A) / |W + s B A|. Nothing is written, and little held beside what is being read.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from core_model.checkpoint.files import SafetensorsFile, is_file_name
from core_model.checkpoint.folder import Location, locate
from core_model.checkpoint.header import Entry
from core_model.checkpoint.hub_cache import find_cached
from core_model.checkpoint.json_text import read_json
from core_model.checkpoint.merging import Change, ChangedFile, Changes, WholeTensors
from core_model.checkpoint.shards import TensorStore
from core_model.errors import CheckpointError
from core_model.results import Fact
from core_model.shapes import Shape
from core_model.wording import counted, shown, some_of

_WRAPPER = "base_model.model."
_FACTOR = re.compile(r"(?P<module>.+)\.lora_(?P<table>embedding_)?(?P<factor>[AB])(\.\w+)?(\.weight)?")
_MAGNITUDE = re.compile(r"(?P<module>.+)\.lora_magnitude_vector(\.\w+)?(\.weight)?")
_WHOLE = re.compile(r"\.(modules_to_save\.\w+|base_layer)(?=\.)")
_MODULE_NAME = re.compile(r"[\w.]+", re.ASCII)
_LONGEST_PREFIX = 4
_UNREAD = {
    "use_qalora": "QA-LoRA",
    "lora_bias": "LoRA with biases of its own",
    "target_parameters": "LoRA on bare parameters",
    "layer_replication": "LoRA with repeated layers",
    "alora_invocation_tokens": "activated LoRA",
    "trainable_token_indices": "LoRA with trainable tokens",
}
"""Keys of an adapter_config.json that ask for more than LoRA or DoRA, and what people call it."""
_CHANGED_BASE = ("pissa", "olora", "corda", "loftq")
"""Initialisations that change the base's weights too: what they were changed to is not in the adapter."""


@dataclass(frozen=True, kw_only=True)
class AdapterConfig:
    """What an adapter_config.json says, as far as merging needs it. `alphas` are by the end of a module's name."""

    alpha: float
    by_root: bool
    transposed: bool
    has_magnitudes: bool
    alphas: Mapping[str, float] = field(default_factory=dict)

    def scale(self, module: str, rank: int) -> float:
        """What the product of the two factors of a module is multiplied by."""
        own = (alpha for name, alpha in self.alphas.items() if f".{module}".endswith(f".{name}"))
        return next(own, self.alpha) / (math.sqrt(rank) if self.by_root else rank)


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
        planned, whole = _plan(location.name, place.name, config, plain.entries, factors.entries)
        changes, replaced = Changes(factors, planned), set(whole.values())
        files += [ChangedFile(path, changes, lambda name: None if name in replaced else name) for path in plain.files]
        files.append(WholeTensors(factors, changes, whole.get))
        chosen = {name: plain.file_of(name) for name in plain.entries if name not in replaced}
        store = TensorStore(files[1:], chosen)
    except BaseException:
        for file in files:
            file.close()
        raise
    finally:
        plain.close()
    kind = "DoRA" if config.has_magnitudes else "LoRA"
    told = f"{location.name}: {kind}, merged into {counted(len(planned), 'weight')}"
    if whole:
        told += f"; stored whole: {some_of(whole.values())}"
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
    """The config of LoRA or DoRA; CheckpointError names what else it asks for."""

    def refused(what: str) -> CheckpointError:
        return CheckpointError(
            f"{location.name} is an adapter by {what}: only LoRA and DoRA are merged here; merge it with peft "
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
        has_magnitudes=document.get("use_dora") is True,
        alphas={name: _number(location, f"alpha_pattern.{name}", alpha) for name, alpha in alphas.items()},
    )


def _number(location: Location, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e9:
        raise CheckpointError(
            f"{shown(key)} is {shown(repr(value))} in adapter_config.json: a number was expected",
            path=location.adapter_config,
        )
    return float(value)


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
        else:
            found.whole[name] = _WHOLE.sub("", short)
    if not found.factors:
        raise CheckpointError(f"{adapter} holds no LoRA weights (lora_A, lora_B): download the adapter again")
    return found


def _plan(
    adapter: str, base: str, config: AdapterConfig, held: Mapping[str, Entry], stored: Mapping[str, Entry]
) -> tuple[dict[str, Change], dict[str, str]]:
    """The change of each weight of the base, and the tensors the adapter stores whole, with their names in the base."""
    find, found = _finder(held), _sorted(adapter, config, stored)
    whole = {name: find(plain) or plain for name, plain in found.whole.items()}
    shapes = {name: held[name].shape for name in held} | {own: stored[name].shape for name, own in whole.items()}
    changes: dict[str, Change] = {}
    for (module, is_table), pair in found.factors.items():
        target = find(f"{module}.weight")
        if target is None:
            raise CheckpointError(
                f"{adapter} changes {shown(module)}, which {base} has not: give the model the adapter was trained on"
            )
        missing = [f"lora_{factor}" for factor in "AB" if factor not in pair]
        missing += ["lora_magnitude_vector"] if config.has_magnitudes and module not in found.magnitudes else []
        if missing:
            raise CheckpointError(f"{adapter} holds no {missing[0]} of {shown(module)}: download it again")
        a, b = stored[pair["A"]].shape, stored[pair["B"]].shape
        is_turned = is_table or _is_turned(shapes[target], a, b, stated=config.transposed)
        magnitude = found.magnitudes.get(module)
        _require_fit(adapter, target, shapes[target], a, b, transposed=is_turned)
        if magnitude is not None and math.prod(stored[magnitude].shape) != b[0]:
            raise CheckpointError(
                f"{adapter} has {list(stored[magnitude].shape)} for the lengths of {b[0]} outputs: download it again",
                tensor=magnitude,
            )
        scale = config.scale(module, a[0])
        changes[target] = Change(a=pair["A"], b=pair["B"], scale=scale, transposed=is_turned, magnitude=magnitude)
    return changes, whole


def _is_turned(weight: Shape, a: Shape, b: Shape, *, stated: bool) -> bool:
    """Whether a weight is stored [inputs, outputs]: as the config says of all modules, where that fits."""
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
