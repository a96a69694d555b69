"""Reading one safetensors file: the header at once, values in pieces, when asked.

Plain reads, not a memory map: a mapped file that is cut short while open kills the process, and its pages count as
ours. The file stays open until `close`: it may be renamed or deleted meanwhile, except on Windows, and when it changes
in place, reading says so.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from core_model.checkpoint.header import LENGTH_BYTES, MAX_HEADER_BYTES, Entry, Header, HeaderError, parse_header
from core_model.checkpoint.recognise import N_FIRST_BYTES, recognise
from core_model.checkpoint.stored_types import Bytes
from core_model.errors import CheckpointError, PickleError
from core_model.pieces import Numbers
from core_model.results import FloatArray
from core_model.wording import file_name, shown

Number = TypeVar("Number", bound=np.generic)
PIECE_BYTES = 1024 * 1024
_LONGEST_NAME_BYTES = 255
"""As long as a name may be in the file systems people have."""


def is_file_name(text: str) -> bool:
    """Whether a file beside another may have that name: nothing that leads out of the folder, or that none can have."""
    leads_out = text in ("", ".", "..") or any(mark in text for mark in "/\\:\0")
    return not leads_out and len(text.encode("utf-8", "surrogatepass")) <= _LONGEST_NAME_BYTES


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; CheckpointError for a folder, a pipe, a device or a file we may not read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CheckpointError(f"{file_name(path)} is not a regular file: nothing can be read from it", path=path)
        return path.open("rb")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CheckpointError(f"{file_name(path)} cannot be read: {reason}", path=path) from error


class SafetensorsFile:
    """An open safetensors file whose header has been checked. Safe to read from several threads."""

    def __init__(self, path: Path) -> None:
        """Open and check; CheckpointError says what the file is instead, or what is wrong with it."""
        self.path = path
        self._file = open_regular(path)
        self._lock = threading.Lock()
        try:
            self._state = self._current_state()
            header_bytes = self._read_header_bytes()
            self._header = self._parse(header_bytes)
        except BaseException:
            self._file.close()
            raise
        self._data_start = LENGTH_BYTES + len(header_bytes)
        self.header_digest = hashlib.sha256(header_bytes).digest()

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The tensors by name, in the header's order."""
        return self._header.entries

    @property
    def metadata(self) -> Mapping[str, str]:
        """The header's free text."""
        return self._header.metadata

    def read(self, name: str, begin: int = 0, end: int | None = None) -> FloatArray:
        """The values widened to float32: the whole tensor in its shape, or elements begin to end, flat."""
        entry = self.entries[name]
        whole = begin == 0 and end is None
        end = entry.n_elements if end is None else end
        values = np.empty(end - begin, dtype=np.float32)
        for part, piece in self.pieces(name, begin, end):
            values[part.start - begin : part.stop - begin] = piece
        return values.reshape(entry.shape) if whole else values

    def pieces(self, name: str, begin: int = 0, end: int | None = None) -> Iterator[tuple[slice, FloatArray]]:
        """Elements begin to end as flat float32 arrays of at most 1 MB as stored, each with its place in the tensor."""
        return self._pieces(name, self.entries[name].dtype.widen, begin, end)

    def exact_pieces(self, name: str, begin: int = 0, end: int | None = None) -> Iterator[tuple[slice, Numbers]]:
        """The same in a format that loses nothing: integers and float64 as they are."""
        return self._pieces(name, self.entries[name].dtype.exact, begin, end)

    def _pieces(
        self, name: str, convert: Callable[[Bytes], npt.NDArray[Number]] | None, begin: int, end: int | None
    ) -> Iterator[tuple[slice, npt.NDArray[Number]]]:
        """Elements begin to end by pieces, as `convert` makes them of their bytes."""
        entry = self.entries[name]
        n_element = entry.dtype.bits // 8
        if convert is None:
            raise CheckpointError(
                f"{shown(name)} is stored as {entry.dtype.name}: such values cannot be shown",
                path=self.path,
                tensor=name,
            )
        step = PIECE_BYTES // n_element
        end = entry.n_elements if end is None else end
        for first in range(begin, end, step):
            last = min(first + step, end)
            raw = self._read_data(name, entry.begin + first * n_element, (last - first) * n_element)
            yield slice(first, last), convert(raw)

    def close(self) -> None:
        """Release the file; reading afterwards raises CheckpointError."""
        with self._lock:
            self._file.close()

    def _read_data(self, name: str, begin: int, n_bytes: int) -> Bytes:
        """Bytes of the data section; CheckpointError when the file has changed since it was opened."""
        buffer = bytearray(n_bytes)
        with self._lock:
            if self._file.closed:
                raise CheckpointError(
                    f"{file_name(self.path)} has been closed: open it again to read {shown(name)}",
                    path=self.path,
                    tensor=name,
                )
            self._file.seek(self._data_start + begin)
            n_read = self._file.readinto(buffer)
            changed = self._current_state() != self._state
        if changed or n_read != n_bytes:
            raise CheckpointError(
                f"{file_name(self.path)} has changed since it was opened: open it again to read {shown(name)}",
                path=self.path,
                tensor=name,
            )
        return np.frombuffer(buffer, dtype=np.uint8)

    def _current_state(self) -> tuple[int, int]:
        """Size in bytes and time of the last change."""
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns

    def _read_header_bytes(self) -> bytes:
        """The header's JSON text; its length is checked against the file before it is read."""
        size, _ = self._state
        first_bytes = self._file.read(N_FIRST_BYTES)
        if not first_bytes:
            raise self._refused("is empty (0 bytes): download it again")
        length = int.from_bytes(first_bytes[:LENGTH_BYTES], "little")
        plausible = 2 <= length <= min(MAX_HEADER_BYTES, size - LENGTH_BYTES)
        begins_as_header = plausible and first_bytes[LENGTH_BYTES:].lstrip(b" ").startswith(b"{")
        if not begins_as_header and (other := recognise(first_bytes)) is not None:
            error = PickleError if other.is_pickle else CheckpointError
            raise error(f"{file_name(self.path)} is {other.sentence}", path=self.path)
        if size < LENGTH_BYTES:
            raise self._refused(
                f"is not a valid safetensors file: {size} bytes cannot hold a header; download it again"
            )
        if length < 2 or length > MAX_HEADER_BYTES:
            raise self._refused(
                f"is not a valid safetensors file: its first 8 bytes give a header of {length} bytes, "
                f"at most {MAX_HEADER_BYTES} are allowed"
            )
        if length > size - LENGTH_BYTES:
            raise self._refused(
                f"is truncated inside its header, which should have {length} bytes: the download was "
                "interrupted; download it again"
            )
        self._file.seek(LENGTH_BYTES)
        return self._file.read(length)

    def _parse(self, header_bytes: bytes) -> Header:
        """The checked header, held against the size of the file."""
        try:
            header = parse_header(header_bytes)
        except HeaderError as error:
            raise self._refused(f"is not a valid safetensors file: {error}") from error
        held = self._state[0] - LENGTH_BYTES - len(header_bytes)
        if held < header.n_data_bytes:
            raise self._refused(
                f"is truncated: its header describes {header.n_data_bytes} bytes of data, {held} are there; "
                "the download was interrupted, download it again"
            )
        if held > header.n_data_bytes:
            raise self._refused(
                f"is not a valid safetensors file: {held - header.n_data_bytes} extra bytes follow the last tensor"
            )
        return header

    def _refused(self, reason: str) -> CheckpointError:
        """The error for this file, with its name in front."""
        return CheckpointError(f"{file_name(self.path)} {reason}", path=self.path)
