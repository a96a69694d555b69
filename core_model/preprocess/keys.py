"""Reading the keys of a settings file: typed, checked, and with errors that name the key and the file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import msgspec

from core_model.errors import InputError

Keys = TypeVar("Keys")
_FAULT = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<place>[^`]*)`)?")


def read_keys(document: Mapping[str, Any], keys: type[Keys], file: str) -> Keys:
    """The document as a dataclass of known keys, others left alone; InputError names the first wrong one."""
    try:
        read = msgspec.convert(document, keys)
    except msgspec.ValidationError as error:
        fault = _FAULT.fullmatch(str(error))
        assert fault is not None
        place = f"{fault['place']} in {file}" if fault["place"] else file
        what = fault["what"].replace("`", "").replace("Expected", "expected").replace("Object", "it is")
        raise InputError(f"{place} cannot be used: {what}") from error
    for field in fields(keys):  # pyright: ignore[reportArgumentType]
        value = getattr(read, field.name)
        numbers = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
        if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
            raise InputError(f"{field.name} is {value} in {file}: finite numbers were expected")
    return read
