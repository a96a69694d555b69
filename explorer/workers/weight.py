"""What an answer weighs, for the caches that have a budget."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np

_LOOKED_AT = 64
"""Of more parts than twice so many, about so many are weighed and stand for the others."""


def weight_of(value: object) -> int:
    """Bytes that a frozen record, an array, a text, or a tuple or mapping of them keeps in memory, roughly.

    Quick for a text of any length: the window waits for it. A part that stands in several places counts once.
    """
    if isinstance(value, np.ndarray):
        return value.nbytes
    parts = _parts(value)
    seen = parts[:: max(1, len(parts) // _LOOKED_AT)]
    distinct = {id(part): part for part in seen}.values()
    return sys.getsizeof(value) + sum(map(weight_of, distinct)) * len(parts) // max(1, len(seen))


def _parts(value: object) -> tuple[object, ...]:
    if isinstance(value, tuple):
        return value
    if isinstance(value, Mapping):
        return tuple(value.items())
    if is_dataclass(value):
        return tuple(getattr(value, field.name) for field in fields(value))
    return ()
