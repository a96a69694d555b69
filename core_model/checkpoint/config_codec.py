"""ModelConfig to JSON and back; unknown fields, wrong types and bad values are named by their place.

A record carries its "type" where several kinds fit in one field; one kind of them may be what no type means. Other
records are told by where they stand.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from core_model.config import (
    AlibiPositions,
    AudioEmbedding,
    BucketedPositions,
    DisentangledPositions,
    GridPositions,
    LearnedPositions,
    ModelConfig,
    PatchEmbedding,
    RotaryPositions,
    SinusoidalPositions,
    VectorEmbedding,
)
from core_model.errors import ConfigError
from core_model.wording import shown

_KINDS: dict[str, type] = {
    "sinusoidal": SinusoidalPositions,
    "learned": LearnedPositions,
    "rotary": RotaryPositions,
    "alibi": AlibiPositions,
    "bucketed": BucketedPositions,
    "grid": GridPositions,
    "disentangled": DisentangledPositions,
    "vectors": VectorEmbedding,
    "patches": PatchEmbedding,
    "audio": AudioEmbedding,
}
_PLAIN_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
_LARGEST_WHOLE = 2**63
_TYPE_NAMES = {kind: name for name, kind in _KINDS.items()}

Record = TypeVar("Record")


def config_to_json(config: ModelConfig) -> dict[str, Any]:
    """The config as plain dicts, lists and numbers."""
    return _encode(config)


def config_from_json(document: Mapping[str, Any]) -> ModelConfig:
    """The config such a document describes; ConfigError names the place, the value found and what was expected."""
    return _record(document, ModelConfig, "config")


def _encode(value: Any) -> Any:
    if is_dataclass(value):
        encoded = {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
        kind = _TYPE_NAMES.get(type(value))
        return encoded if kind is None else {"type": kind, **encoded}
    return [_encode(item) for item in value] if isinstance(value, tuple) else value


def _record(document: object, record: type[Record], place: str) -> Record:
    """One dataclass from its document."""
    if not isinstance(document, Mapping):
        raise ConfigError(f"{place} is {shown(repr(document))}: an object was expected")
    known = {field.name: field for field in fields(record)}  # pyright: ignore[reportArgumentType]
    if unknown := [key for key in document if key not in known]:
        raise ConfigError(
            f"{place} has the unknown field {shown(repr(unknown[0]))}: it may come from a newer version of this program"
        )
    if absent := [name for name, field in known.items() if name not in document and _is_required(field)]:
        raise ConfigError(f"{place} has no {absent[0]}: the model cannot be built without it")
    hints = _annotations(record)
    values = {name: _value(value, hints[name], f"{place}.{name}") for name, value in document.items()}
    try:
        return record(**values)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error


@cache
def _annotations(record: type) -> dict[str, Any]:
    return get_type_hints(record)


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _value(value: object, expected: Any, place: str) -> Any:
    """One field's value as its annotation says."""
    origin, arguments = get_origin(expected), get_args(expected)
    if origin in (Union, types.UnionType):
        return _one_of(value, arguments, place)
    if origin is tuple:
        if not isinstance(value, list):
            raise ConfigError(f"{place} is {shown(repr(value))}: a list was expected")
        return tuple(_value(item, arguments[0], f"{place}[{i}]") for i, item in enumerate(value))
    if origin is Literal:
        if value not in arguments:
            raise ConfigError(f"{place} is {shown(repr(value))}: expected one of {', '.join(map(str, arguments))}")
        return value
    if is_dataclass(expected):
        return _record(value, expected, place)  # pyright: ignore[reportArgumentType]
    if expected is float and type(value) is int and abs(value) < _LARGEST_WHOLE:
        return float(value)
    if type(value) is not expected:
        raise ConfigError(f"{place} is {shown(repr(value))}: {_PLAIN_NAMES[expected]} was expected")
    return value


def _one_of(value: object, choices: tuple[Any, ...], place: str) -> Any:
    """A value that may be absent, or one of several records told apart by their type."""
    if value is None and type(None) in choices:
        return None
    kinds = [choice for choice in choices if choice is not type(None)]
    if len(kinds) == 1:
        return _value(value, kinds[0], place)
    if not isinstance(value, Mapping):
        raise ConfigError(f"{place} is {shown(repr(value))}: an object was expected")
    names = {_TYPE_NAMES.get(kind): kind for kind in kinds}
    name = value.get("type")
    if not isinstance(name, str | None) or name not in names:
        expected = ", ".join(known or "none" for known in names)
        raise ConfigError(f"{place} has the type {shown(repr(name))}: expected one of {expected}")
    return _record({key: item for key, item in value.items() if key != "type"}, names[name], place)
