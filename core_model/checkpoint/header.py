"""The header of a safetensors file, checked in full before anything is allocated for it.

The format: 8 bytes, little-endian, the header's length; a JSON object, here of at most 25 000 000 bytes, padded with
spaces; then the data. Each entry has `dtype`, `shape` and `data_offsets` [begin, end), relative to the data's start;
together the entries cover the data without holes or overlaps. `__metadata__` is an object of strings, never a tensor.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.stored_types import STORED_TYPES, StoredType
from core_model.json_size import MOST_VALUES, n_values
from core_model.wording import shown

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 25_000_000
"""For more than 100 000 tensors. The format allows four times as much, which would take gigabytes to read."""
_MAX_DIMENSIONS = 64
_MAX_NUMBER = 2**63 - 1


class HeaderError(ValueError):
    """What is wrong with a header; the reader adds the file's name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One tensor of a file: `begin` and `end` count bytes from the start of the data."""

    dtype: StoredType
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def n_bytes(self) -> int:
        """Bytes the tensor takes in the file."""
        return self.end - self.begin

    @property
    def n_elements(self) -> int:
        """Numbers in the tensor; a scalar has one."""
        return math.prod(self.shape)


@dataclass(frozen=True, kw_only=True)
class Header:
    """The checked header: its tensors in the header's order, its free text, and the bytes of data that must follow."""

    entries: Mapping[str, Entry]
    metadata: Mapping[str, str]
    n_data_bytes: int


def parse_header(text: bytes) -> Header:
    """The header in these bytes; HeaderError says what is wrong with it."""
    document = _decode(text)
    metadata = document.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise HeaderError("its __metadata__ is not an object of strings")
    entries = {name: _entry(name, described) for name, described in document.items()}
    return Header(entries=entries, metadata=metadata, n_data_bytes=_covered_bytes(entries))


def _decode(text: bytes) -> dict[str, Any]:
    """The JSON object in the bytes, each key once."""
    if n_values(text) > MOST_VALUES:
        raise HeaderError(f"its header holds more than {MOST_VALUES} values: no model has as many tensors")
    try:
        document = json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise HeaderError(f"its header is not UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise HeaderError("its header is nested too deeply") from error
    except HeaderError:
        raise
    except ValueError as error:
        raise HeaderError(f"its header is not valid JSON ({shown(error)})") from error
    if not isinstance(document, dict):
        raise HeaderError("its header is not a JSON object")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs as a dict; HeaderError where a key comes twice."""
    unique = dict(pairs)
    if len(unique) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise HeaderError(f"its header names {shown(twice)!r} twice (a duplicate key)")
    return unique


def _refuse_constant(name: str) -> None:
    """NaN and Infinity are not JSON."""
    raise HeaderError(f"its header is not valid JSON (it holds {name})")


def _entry(name: str, described: object) -> Entry:
    """One tensor's description, every field checked."""
    if not isinstance(described, dict):
        raise HeaderError(f"its header describes tensor {shown(name)!r} by {shown(described)}, not by an object")
    dtype = described.get("dtype")
    stored = STORED_TYPES.get(dtype) if isinstance(dtype, str) else None
    if stored is None:
        raise HeaderError(f"its header gives tensor {shown(name)!r} the unknown dtype {shown(repr(dtype))}")
    shape = _whole_numbers(described.get("shape"))
    if shape is None or len(shape) > _MAX_DIMENSIONS:
        raise HeaderError(
            f"its header gives tensor {shown(name)!r} the shape {shown(described.get('shape'))}: "
            f"at most {_MAX_DIMENSIONS} whole numbers of at least 0 were expected"
        )
    offsets = _whole_numbers(described.get("data_offsets"))
    if offsets is None or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise HeaderError(
            f"its header gives tensor {shown(name)!r} the data_offsets {shown(described.get('data_offsets'))}: "
            "[begin, end] was expected"
        )
    entry = Entry(dtype=stored, shape=shape, begin=offsets[0], end=offsets[1])
    n_bits = entry.n_elements * stored.bits
    if n_bits != 8 * entry.n_bytes:
        raise HeaderError(
            f"its header gives tensor {shown(name)!r} {entry.n_bytes} bytes, "
            f"but its shape {shown(shape)} of {stored.name} has a size of {shown(-(-n_bits // 8))}"
        )
    return entry


def _whole_numbers(values: object) -> tuple[int, ...] | None:
    """The list as whole numbers from 0 to 2^63 - 1; None when it is not that."""
    if isinstance(values, list) and all(type(value) is int and 0 <= value <= _MAX_NUMBER for value in values):
        return tuple(values)
    return None


def _covered_bytes(entries: Mapping[str, Entry]) -> int:
    """Bytes of data the entries cover from 0 on; HeaderError where they overlap or leave a hole."""
    position = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin < position:
            raise HeaderError(f"its header is corrupt: the offsets of tensor {shown(name)!r} overlap another tensor's")
        if entry.begin > position:
            raise HeaderError(
                f"its header is corrupt: there is a hole of {entry.begin - position} bytes "
                f"before the offset of tensor {shown(name)!r}"
            )
        position = entry.end
    return position
