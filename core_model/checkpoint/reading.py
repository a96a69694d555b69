"""From config.json and tensor names to a model description: which family, what config, what fits and what does not.

Whatever goes wrong here leaves the tensors to look at: it becomes the `problem` that loading raises.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np

from core_model.checkpoint import native
from core_model.checkpoint.assuming import require_agreement, with_assumed
from core_model.checkpoint.facts import native_facts, stated_facts, uncomputed_head
from core_model.checkpoint.families import FAMILIES, family_of, family_of_tensors
from core_model.checkpoint.families.family import Family, NameTable, Weights, weights_of
from core_model.checkpoint.folder import CONFIG_NAME, Location
from core_model.checkpoint.json_text import read_json
from core_model.checkpoint.matching import Match, match
from core_model.checkpoint.quantised import quantised_weights, stated_method
from core_model.checkpoint.shards import TensorStore
from core_model.checkpoint.stated import find_stated
from core_model.checkpoint.unlisted import reason_by_names, reason_by_type
from core_model.config import ModelConfig
from core_model.errors import CheckpointError, ConfigError, CoreError
from core_model.keys import read_keys
from core_model.results import Fact, FloatArray
from core_model.wording import counted, shown, some_of

MAX_LAYERS = 1000
"""As deep as any published transformer (DeepNet, Wang et al. 2022)."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a checkpoint was read as. `problem` is why no model can be built from it; None when one can.

    `needs` are facts that no file states and that may be given to make one: see `ModelInfo.needs`.
    """

    family: str | None = None
    label: str | None = None
    model_type: str | None = None
    architecture: str | None = None
    config: ModelConfig | None = None
    match: Match | None = None
    facts: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()
    problem: CoreError | None = None
    needs: tuple[str, ...] = ()


class _UnstatedError(ConfigError):
    """A fact that no file states, and that may be given."""

    def __init__(self, fact: str, message: str) -> None:
        super().__init__(message)
        self.fact = fact


def read_checkpoint(
    location: Location, store: TensorStore, assume: Mapping[str, object], *, resized: Collection[str] = ()
) -> Reading:
    """The reading of the tensors in `store` with the config beside them; `assume` gives facts that no file states.

    Of the facts `resized`, what the tensors' shapes tell counts, whatever the config states.
    """
    reading = Reading()
    try:
        if location.adapter_config is not None:
            return Reading(problem=_adapter_error(location), needs=("base",))
        document = None if location.config is None else read_json(location.config)
        reading = Reading(
            model_type=_text(document or {}, "model_type"),
            architecture=_architecture(document or {}),
            warnings=_config_warnings(document, store),
        )
        if document is not None and document.get("format") == native.FORMAT:
            return _read_native(document, store, assume)
        return _read_family(reading, location, store, document, assume, resized)
    except _UnstatedError as error:
        return replace(reading, problem=error, needs=(error.fact,))
    except CoreError as error:
        return replace(reading, problem=error)


def _read_native(document: Mapping[str, Any], store: TensorStore, assume: Mapping[str, object]) -> Reading:
    """A model trained here: our own names and config."""
    config = native.read_config(document)
    weights, facts = weights_of(native.NAMES, _shapes(store)), native_facts(config)
    require_agreement(facts, assume)
    reading = Reading(family=native.FAMILY, label="Transformer Explorer", config=config, facts=facts)
    return _matched(reading, native.NAMES, config, weights, store)


def _read_family(
    reading: Reading,
    location: Location,
    store: TensorStore,
    document: Mapping[str, Any] | None,
    assume: Mapping[str, object],
    resized: Collection[str],
) -> Reading:
    """A model of one of the families, from its config and what its tensors' shapes tell."""
    if not store.entries:
        raise CheckpointError(f"{location.name} holds no tensors: download its weights again", path=location.path)
    if quantised := quantised_weights(document or {}, store.entries):
        raise CheckpointError(f"{location.name}: {quantised}", path=location.path)
    family = _known_family(reading, location, document, store)
    weights = weights_of(
        family.names,
        _shapes(store),
        architecture=reading.architecture,
        differ=_compared_once(store),
        values=lambda name: store.read(name).ravel().tolist(),
    )
    found = find_stated(family, location, store, document)
    if document is None and found.document:
        reading = replace(reading, warnings=())
    stated = {**family.renamed(found.document), **_sizes(family, weights, resized)}
    with found.named_in_errors(family):
        keys = _read_keys(family, location, weights, stated, assume)
        _require_plausible_layers(family, keys, len(store.entries))
        config = family.read(keys, weights)
    reading = replace(
        reading,
        family=family.key,
        label=family.label,
        config=config,
        facts=stated_facts(family, config, keys, stated, reading.architecture),
        warnings=(*reading.warnings, *family.remarks(keys, weights, config)),
    )
    if (named := uncomputed_head(config, reading.architecture)) is not None:
        told = f"the output head of {shown(named)} is not computed here: the hidden states are the output"
        reading = replace(reading, warnings=(*reading.warnings, told))
    if _is_untied_against_config(family, config, stated):
        told = "the config ties the output head to the token embedding, but both are stored and differ: each is used"
        reading = replace(reading, warnings=(*reading.warnings, told))
    return _matched(reading, family.names, config, weights.without(family.left_out(keys)), store)


def _sizes(family: Family, weights: Weights, facts: Collection[str]) -> dict[str, object]:
    """What the shapes tell of these facts, by the family's keys."""
    told, keys = family.sizes(weights), [family.places.get(fact) for fact in facts]
    return {key: told[key] for key in keys if key is not None and told.get(key) is not None}


def _read_keys(
    family: Family, location: Location, weights: Weights, stated: Mapping[str, Any], assume: Mapping[str, object]
) -> Any:
    """The family's keys, from what is stated, what the shapes tell and what was given."""
    told = {key: size for key, size in family.sizes(weights).items() if size is not None}
    known = {**family.implied(stated, weights), **with_assumed(family, stated, told, assume)}
    heads = family.places["n_heads"]
    if heads not in known and (not stated or heads in _required(family.keys)):
        raise _unstated_heads(family, location, is_beside_others=bool(stated))
    return read_keys(known, family.keys)


def _unstated_heads(family: Family, location: Location, *, is_beside_others: bool) -> _UnstatedError:
    """What to say where the number of heads is all that is missing: of a config, or with it."""
    heads, document = family.places["n_heads"], family.document or CONFIG_NAME
    unread = "the number of heads cannot be read from weights"
    give = "the attention heads of a layer (on the command line: --heads N)"
    if is_beside_others:
        return _UnstatedError("n_heads", f"{CONFIG_NAME} has no {heads}, and {unread}: add it, or give n_heads, {give}")
    return _UnstatedError(
        "n_heads",
        f"{location.name} has no {document}: its names are {family.label}'s, but {unread}; put {document} beside it "
        f"or give {'n_heads' if heads == 'n_heads' else f'n_heads ({heads})'}, {give}",
    )


def _required(keys: type) -> set[str]:
    """The keys that have no default."""
    return {field.name for field in fields(keys) if field.default is MISSING and field.default_factory is MISSING}


def _require_plausible_layers(family: Family, keys: Any, n_tensors: int) -> None:
    """Refuse a number of layers that the file cannot hold, before a list of that length is made."""
    for key in (family.places["n_layers"], *family.layer_counts):
        n_layers = attrgetter(key)(keys)
        if n_layers is None:
            continue
        place = f"{key} is {shown(n_layers)} in config.json"
        if n_layers > MAX_LAYERS:
            raise ConfigError(f"{place}: at most {MAX_LAYERS} layers are read")
        if n_layers > n_tensors and (key in family.layer_counts or not family.shares_layers):
            raise ConfigError(f"{place}: the file holds only {counted(n_tensors, 'tensor')}, fewer than one a layer")


def _matched(reading: Reading, table: NameTable, config: ModelConfig, weights: Weights, store: TensorStore) -> Reading:
    """The reading with the config held against the file: what is left over is a warning, what is missing a problem."""
    matched = match(table, config, weights)
    warnings = reading.warnings
    if matched.unexpected:
        n_unused = counted(len(matched.unexpected), "tensor")
        warnings = (*warnings, f"the file has {n_unused} that this model does not use: {some_of(matched.unexpected)}")
    warnings += tuple(
        f"{shown(name)} is stored with other values than {shown(used)}, which is used in its place"
        for name, used in matched.overruled.items()
    )
    problem = matched.problem or _not_floating(matched, store)
    error = None if problem is None else CheckpointError(problem)
    return replace(reading, match=matched, warnings=warnings, problem=error)


def _not_floating(matched: Match, store: TensorStore) -> str | None:
    """A sentence when weights the model needs are stored as something else than floating-point numbers."""
    entries = store.entries
    names = [name for name in matched.sites if entries[name].dtype.kind != "float" or not entries[name].dtype.widen]
    if not names:
        return None
    return (
        f"{shown(names[0])} is stored as {entries[names[0]].dtype.name}: attention needs floating-point weights, "
        "so quantised ones cannot be used without the model they were made from"
    )


def _known_family(
    reading: Reading, location: Location, document: Mapping[str, Any] | None, store: TensorStore
) -> Family:
    """The family the config names or, without a name, that of the tensors; CheckpointError says what it is instead."""
    named = reading.model_type or reading.architecture or (document and _text(document, "_class_name"))
    documented = [family for family in FAMILIES if family.document and location.beside(family.document)]
    family = family_of_tensors(_shapes(store), documented if named else FAMILIES)
    if family is None and named:
        family = family_of(reading.model_type, reading.architecture)
    if family is not None:
        return family
    if known := reason_by_type(reading.model_type) or (not named and reason_by_names(store.entries)):
        raise CheckpointError(f"{location.name} is {known}: only its tensors are shown", path=location.path)
    if document is None:
        reason = f"{location.name} has no config.json, and its tensor names are not those of a known family"
    elif class_name := _text(document, "_class_name"):
        reason = f"{location.name} is a {shown(class_name)} of diffusers, which is not a transformer shown here"
    elif named:
        reason = f"the model_type {shown(repr(named))} in config.json is unknown here"
    else:
        reason = "config.json names no model_type, and the tensor names are not those of a known family"
    custom = "; the custom code it names (auto_map) is never run" if document and "auto_map" in document else ""
    raise CheckpointError(
        f"{reason}{custom}: no attention is shown, only its tensors; {len(FAMILIES)} families are known, which the "
        "README lists",
        path=location.path,
    )


def _adapter_error(location: Location) -> CheckpointError:
    """What a folder with a LoRA adapter is, and the model it belongs to."""
    assert location.adapter_config is not None
    base = _text(read_json(location.adapter_config), "base_model_name_or_path")
    needed = f"{shown(base)}" if base else "the model it was trained on"
    return CheckpointError(
        f"{location.name} is an adapter (LoRA, PEFT): it holds only changes to {needed}; "
        "open it again with the folder of that model as its base (on the command line: --base FOLDER)",
        path=location.path,
    )


def _config_warnings(document: Mapping[str, Any] | None, store: TensorStore) -> tuple[str, ...]:
    """What a config asks for that is not done."""
    if document is None:
        return ("there is no config.json: what shapes do not tell is assumed as the family's usual",)
    warnings = []
    if "auto_map" in document:
        warnings.append("config.json names custom code (auto_map): it was not run")
    if (method := stated_method(document)) and not quantised_weights(document, store.entries):
        warnings.append(f"config.json speaks of quantisation by {method}, but plain weights are stored: they are used")
    return tuple(warnings)


def _is_untied_against_config(family: Family, config: ModelConfig, document: Mapping[str, Any]) -> bool:
    is_language_model = config.head is not None and config.head.task in ("language_model", "masked_language_model")
    says_tied = document.get("tie_word_embeddings", family.tied_by_default) is not False
    return is_language_model and config.head is not None and not config.head.tied and says_tied


def _compared_once(store: TensorStore) -> Callable[[str, str], bool]:
    """Whether two stored tensors differ in shape or in any value: each pair is read once, in whatever order."""

    @cache
    def differ(pair: frozenset[str]) -> bool:
        first, *others = pair
        if any(store.entries[first].shape != store.entries[other].shape for other in others):
            return True
        pieces = ((part, piece, other) for other in others for part, piece in store.pieces(first))
        return not all(_is_same(piece, store.read(other, part.start, part.stop)) for part, piece, other in pieces)

    return lambda first, second: differ(frozenset((first, second)))


def _is_same(a: FloatArray, b: FloatArray) -> bool:
    """Whether all values are equal, NaN to NaN; equal bits are told in a quarter of the time."""
    return np.array_equal(a.view(np.int32), b.view(np.int32)) or np.array_equal(a, b, equal_nan=True)


def _shapes(store: TensorStore) -> dict[str, tuple[int, ...]]:
    return {name: entry.shape for name, entry in store.entries.items()}


def _architecture(document: Mapping[str, Any]) -> str | None:
    named = document.get("architectures")
    first = named[0] if isinstance(named, list) and named else None
    return first if isinstance(first, str) else None


def _text(document: Mapping[str, Any], key: str) -> str | None:
    value = document.get(key)
    return value if isinstance(value, str) else None
