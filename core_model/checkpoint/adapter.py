"""LoRA adapters as the peft library saves them, merged with the model they change: W + s B A, computed when W is read.

Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1: s = alpha / r for A [r, inputs] and
B [outputs, r]. With rslora s = alpha / sqrt(r) (Kalajdzievski 2023). To W that is stored [inputs, outputs], and to
embedding tables, the transpose is added. DoRA (Liu et al. 2024, eq. 5) gives the weights of each output a learned
length m: m (W + s B A) / |W + s B A|. Nothing is written, and little held beside what is being read.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from core_model.checkpoint.adapter_config import AdapterConfig, read_config, stated_base
from core_model.checkpoint.adapter_plan import Plan, known_base, plan_merging
from core_model.checkpoint.files import SafetensorsFile, is_file_name
from core_model.checkpoint.folder import VOCABULARY_FILES, Location, locate
from core_model.checkpoint.hub_cache import find_cached
from core_model.checkpoint.json_text import read_json
from core_model.checkpoint.merging import ChangedFile, Changes, WholeTensors
from core_model.checkpoint.shards import TensorStore
from core_model.errors import CheckpointError
from core_model.results import Fact
from core_model.wording import counted, some_of


def find_base(location: Location) -> Path | None:
    """Where the base of an adapter lies: at the path it gives, beside it, or in the Hub's local cache; None elsewhere.

    A path on another machine is never tried: looking for it would tell that machine who opens the adapter.
    """
    base = stated_base(location)
    if base is None:
        return None
    is_remote = base.replace("\\", "/").startswith("//")  # as Windows names other machines
    if os.path.isabs(base) and not is_remote and os.path.isdir(base):
        return Path(base)
    name = re.split(r"[/\\]", base.rstrip("/\\"))[-1]
    if is_file_name(name):
        for beside in (location.folder / name, location.folder.parent / name):
            if beside.is_dir() and not beside.samefile(location.folder):
                return beside
    return find_cached(base)


@dataclass(frozen=True, kw_only=True)
class Merged:
    """A base with an adapter's changes: where its config lies, its tensors, what was noticed, what was merged.

    `is_resized` says that the adapter stores tensors of another size than the base has.
    """

    location: Location
    store: TensorStore
    notes: tuple[str, ...]
    fact: Fact
    is_resized: bool


def open_merged(location: Location, base: Path) -> Merged:
    """The base with the adapter's changes in all that is read of it.

    CheckpointError when the adapter asks for more than LoRA, or does not fit the base.
    """
    assert location.adapter_config is not None
    config = read_config(location, read_json(location.adapter_config))
    place = locate(base)
    if place.adapter_config is not None:
        raise CheckpointError(f"{place.name} is an adapter too: give the folder of the model itself", path=base)
    plain, notes = place.open()
    files: list[SafetensorsFile] = []
    try:
        factors = SafetensorsFile(_adapter_file(location))
        files.append(factors)
        known, stored = known_base(place, plain), factors.entries
        plan = plan_merging(location.name, place.name, config, known, stored)
        changes, replaced = Changes(factors, plan.changes), set(plan.whole.values())
        files += [ChangedFile(path, changes, lambda name: None if name in replaced else name) for path in plain.files]
        files.append(WholeTensors(factors, changes, plan.whole.get))
        whole = {own: name for name, own in plan.whole.items()}
        for head, table in plan.parted.items():
            own = None if config.saves(table) else whole.get(table)
            path = plain.file_of(table) if own is None else factors.path
            files.append(ChangedFile(path, changes, {own or table: head}.get))
        chosen = {name: plain.file_of(name) for name in plain.entries if name not in replaced}
        store = TensorStore(files[1:], chosen)
    except BaseException:
        for file in files:
            file.close()
        raise
    finally:
        plain.close()
    merged = replace(place, name=f"{place.name} + {location.name}", path=location.path, adapter=location.folder)
    return Merged(
        location=merged,
        store=store,
        notes=notes,
        fact=Fact(name="adapter", value=_told(location.name, config, plan, merged), origin="stated"),
        is_resized=any(known.shapes.get(own, stored[name].shape) != stored[name].shape for own, name in whole.items()),
    )


def _told(adapter: str, config: AdapterConfig, plan: Plan, merged: Location) -> str:
    """What was merged, and whose tokenizer is used."""
    kind = "DoRA" if config.has_magnitudes else "LoRA"
    told = f"{adapter}: {kind}, merged into {counted(len(plan.changes), 'weight')}"
    if plan.whole:
        told += f"; stored whole: {some_of(plan.whole.values())}"
    if plan.parted:
        told += f"; no longer tied: {some_of(plan.parted)}"
    if any(path.name in VOCABULARY_FILES for path in merged.input_files):
        told += f"; {'the base' if merged.tokenizer_folder == merged.folder else adapter}'s tokenizer is used"
    return told


def _adapter_file(location: Location) -> Path:
    """The one file of weights an adapter has."""
    if len(location.weights) != 1:
        raise CheckpointError(
            f"{location.name} is an adapter in several files, which peft never writes: open one", path=location.path
        )
    return location.weights[0]
