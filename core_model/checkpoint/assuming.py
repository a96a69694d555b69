"""Facts that a person gives because no file states them; what a file does state is not overruled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core_model.checkpoint.facts import FACT_LABELS
from core_model.checkpoint.families.family import Family
from core_model.errors import ConfigError
from core_model.results import Fact
from core_model.wording import shown


def with_assumed(
    family: Family, stated: Mapping[str, Any], told: Mapping[str, object], assume: Mapping[str, object]
) -> dict[str, Any]:
    """The keys of a config.json, what the shapes have `told` where it lacks one, and what the caller gave.

    ConfigError for a fact that the family does not have, or that a file states otherwise.
    """
    known = {**told, **stated}
    for name, value in assume.items():
        if name not in family.places:
            raise ConfigError(
                f"{shown(repr(name))} cannot be assumed of a {family.label} model: give one of "
                f"{', '.join(fact for fact in FACT_LABELS if fact in family.places)}"
            )
        place = family.places[name].split(".")
        if (found := _value_at(known, place)) not in (None, value):
            source = "config.json" if _value_at(stated, place) is not None else "the shapes of its tensors"
            raise _contradiction(name, value, f"{family.places[name]} is {shown(repr(found))} by {source}")
        known = _with_value(known, place, value)
    return known


def require_agreement(facts: Sequence[Fact], assume: Mapping[str, object]) -> None:
    """Refuse facts given of a model whose files state all of them, where they state them otherwise."""
    stated = {fact.name: fact.value for fact in facts}
    for name, value in assume.items():
        if name not in FACT_LABELS:
            raise ConfigError(f"{shown(repr(name))} cannot be assumed of a model whose config.json states everything")
        found = stated.get(FACT_LABELS[name])
        if found != str(value):
            raise _contradiction(name, value, f"{FACT_LABELS[name]} is {found} by config.json")


def _contradiction(name: str, value: object, found: str) -> ConfigError:
    return ConfigError(f"{name} was given as {shown(repr(value))}, but {found}: leave {name} out, or correct the file")


def _value_at(document: Mapping[str, Any], place: Sequence[str]) -> object:
    """The value at a place, inside parts of the document where there are several keys; None where there is none."""
    value: object = document
    for key in place:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _with_value(document: Mapping[str, Any], place: Sequence[str], value: object) -> dict[str, Any]:
    """The document with a value at a place."""
    key, *inside = place
    if inside:
        part = document.get(key)
        value = _with_value(part if isinstance(part, Mapping) else {}, inside, value)
    return {**document, key: value}
