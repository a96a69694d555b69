"""The checks that config records make of their own fields. Each raises ConfigError naming field, value and limit."""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args, get_origin, get_type_hints

from core_model.errors import ConfigError


def require_choices(record: object) -> None:
    """Raise ConfigError unless every field of the record that is one of some names is one of them."""
    for name, choices in _choices(type(record)).items():
        value = getattr(record, name)
        if value not in choices:
            raise ConfigError(f"{name} is {value!r}: it must be one of {', '.join(map(repr, choices))}")


@cache
def _choices(kind: type) -> dict[str, tuple[str, ...]]:
    hints = get_type_hints(kind)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def require_counts(record: object, minimum: int, *names: str) -> None:
    """Raise ConfigError unless every named field of the record is a whole number of at least `minimum`."""
    for name in names:
        value = getattr(record, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ConfigError(f"{name} is {value!r}: it must be a whole number of at least {minimum}")


_LARGEST = 3.4028234663852886e38
"""The largest number of float32, in which is computed."""


def require_positive(record: object, *names: str) -> None:
    """Raise ConfigError unless every named field of the record is a number above zero that float32 holds."""
    for name in names:
        value = getattr(record, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LARGEST:
            raise ConfigError(f"{name} is {value!r}: it must be a finite number above 0, at most {_LARGEST:.1e}")


def given(record: object, *names: str) -> list[str]:
    """The names of those fields that are not None."""
    return [name for name in names if getattr(record, name) is not None]


def require_rate(record: object, *names: str) -> None:
    """Raise ConfigError unless every named field is a dropout rate: at least 0 and below 1."""
    for name in names:
        value = getattr(record, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise ConfigError(f"{name} is {value!r}: a dropout rate must be at least 0 and below 1")
