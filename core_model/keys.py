"""Reading the keys of someone else's JSON file: typed, checked, and with errors that name key, value and file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import msgspec

from core_model.errors import ConfigError, CoreError
from core_model.wording import shown

Keys = TypeVar("Keys")

_FOUND = re.compile(r"Expected (?P<expected>.*?)(?:, got `[^`]*`)? - at `\$\.(?P<place>[^`\[]*)(?P<inside>[^`]*)`")
"""What msgspec says of a wrong value; `inside` begins at the list or the object that has it."""
_ABSENT = re.compile(r"Object missing required field `(?P<key>[^`]*)`(?: - at `\$\.(?P<place>[^`]*)`)?")


def read_keys(
    document: Mapping[str, Any], keys: type[Keys], file: str = "config.json", error: type[CoreError] = ConfigError
) -> Keys:
    """The document in `file` as a dataclass of known keys, others left alone; `error` names the first wrong one."""
    try:
        read = msgspec.convert(document, keys)
    except msgspec.ValidationError as fault:
        raise error(_told(document, str(fault), file)) from fault
    for field in fields(keys):  # pyright: ignore[reportArgumentType]
        value = getattr(read, field.name)
        numbers = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
        if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
            raise error(f"{field.name} is {shown(value)} in {file}: finite numbers were expected")
    return read


def _told(document: Mapping[str, Any], message: str, file: str) -> str:
    """msgspec's message with the key, the value found and what was expected in our words."""
    if absent := _ABSENT.fullmatch(message):
        place = f" in {absent['place']}" if absent["place"] else ""
        return f"{file} has no {absent['key']}{place}: add it, the model cannot be used without"
    if found := _FOUND.fullmatch(message):
        value = _value_at(document, found["place"])
        expected = found["expected"].replace("`", "") + (" in it" if found["inside"] else "")
        return f"{found['place']} is {shown(repr(value))} in {file}: expected {expected}"
    return f"{file}: {shown(message)}"


def _value_at(document: Mapping[str, Any], place: str) -> object:
    """The value a dotted place of the document leads to; what lies on the way when it ends early."""
    value: object = document
    for key in place.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return value
        value = value[key]
    return value
