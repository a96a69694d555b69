"""WAV files, read as far as a model listens. Whole numbers of 8, 16, 24 and 32 bits, and floating-point numbers.

The format: IBM and Microsoft 1991, "Multimedia Programming Interface and Data Specifications 1.0"; its extensible form:
Microsoft 2001, "Multiple channel audio data and WAVE files". Python's own reader knows neither that nor floats.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from core_model.errors import InputError
from core_model.preprocess.files import open_file
from core_model.results import FloatArray
from core_model.wording import file_name

RATES = range(1_000, 1_000_001)
"""Values a second that a sound may have."""
MAX_CHANNELS = 64
_LOUDEST = 1e6
"""Whole numbers end at 1; floating-point ones may exceed it, but not by everything."""

_WHOLE, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_ENCODINGS = {2: "ADPCM", 6: "A-law", 7: "mu-law", 17: "ADPCM", 85: "MP3"}
_FORMAT_BYTES = 40
"""As many as the longest description of how values are stored; a broken file may claim any number."""
_UNTIL_THE_END = 0xFFFFFFFF
"""What programs that could not know the length before they wrote it say it is."""
_OTHERS = (
    (b"ID3", "an MP3 file"),
    (b"\xff\xfb", "an MP3 file"),
    (b"fLaC", "a FLAC file"),
    (b"OggS", "an Ogg file"),
    (b"RF64", "a WAV file of more than 4 GB (RF64)"),
    (b"FORM", "an AIFF file"),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sound:
    """The mean of a sound's channels, -1 to 1, `rate` values a second; `seconds` is how long the whole sound is."""

    wave: FloatArray
    rate: int
    n_channels: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class _Format:
    """How the values of a file are stored."""

    encoding: int
    n_channels: int
    rate: int
    bits: int

    @property
    def n_bytes(self) -> int:
        """Of one value in each channel."""
        return self.n_channels * self.bits // 8


def read_wav(path: Path, seconds: float) -> Sound:
    """The beginning of a sound, at most so many seconds. InputError says what the file is instead, or what is wrong."""
    name = file_name(path)
    with open_file(path) as file:
        _require_wav(name, file.read(12))
        form = None
        while len(head := file.read(8)) == 8:
            (kind, size), begin = struct.unpack("<4sI", head), file.tell()
            if kind == b"fmt ":
                form = _read_format(name, file.read(min(size, _FORMAT_BYTES)))
            elif kind == b"data":
                return _read_values(name, file, size, form, seconds)
            file.seek(begin + size + size % 2)
    raise InputError(f"{name} ends before its sound begins: save or download it again")


def _require_wav(name: str, start: bytes) -> None:
    if start[:4] == b"RIFF" and start[8:] == b"WAVE":
        return
    kind = next((kind for mark, kind in _OTHERS if start.startswith(mark)), "no sound that is read here")
    raise InputError(f"{name} is {kind}: save it as WAV, for example with ffmpeg -i FILE sound.wav")


def _read_format(name: str, chunk: bytes) -> _Format:
    if len(chunk) < 16:
        raise InputError(f"{name} does not say how its sound is stored: save or download it again")
    encoding, n_channels, rate, _, _, bits = struct.unpack("<HHIIHH", chunk[:16])
    if encoding == _EXTENSIBLE and len(chunk) >= 26:
        encoding = struct.unpack("<H", chunk[24:26])[0]
    widths = {_WHOLE: (8, 16, 24, 32), _FLOAT: (32, 64)}.get(encoding)
    if widths is None:
        raise InputError(
            f"{name} is encoded as {_ENCODINGS.get(encoding, f'number {encoding}')}: "
            "save it as uncompressed WAV, for example with ffmpeg -i FILE sound.wav"
        )
    if bits not in widths:
        raise InputError(f"{name} has values of {bits} bits: expected one of {', '.join(map(str, widths))}")
    if not 1 <= n_channels <= MAX_CHANNELS:
        raise InputError(f"{name} has {n_channels} channels: expected 1 to {MAX_CHANNELS}")
    if rate not in RATES:
        raise InputError(f"{name} has {rate} values a second: expected {RATES.start} to {RATES.stop - 1}")
    return _Format(encoding=encoding, n_channels=n_channels, rate=rate, bits=bits)


def _read_values(name: str, file: BinaryIO, size: int, form: _Format | None, seconds: float) -> Sound:
    if form is None:
        raise InputError(f"{name} does not say how its sound is stored before it begins: save it again")
    begin = file.tell()
    n_left = file.seek(0, 2) - begin
    file.seek(begin)
    if size == _UNTIL_THE_END:
        size = n_left
    if n_left < size:
        raise InputError(f"{name} ends after {n_left} of the {size} bytes of its sound: save or download it again")
    n_values = size // form.n_bytes
    if not n_values:
        raise InputError(f"{name} holds no sound (0 values): record it again")
    n_wanted = min(n_values, round(seconds * form.rate))
    values = _numbers(file.read(n_wanted * form.n_bytes), form)
    if not (np.abs(values) < _LOUDEST).all():
        raise InputError(f"{name} holds values that are no numbers, or beyond all measure: save it again")
    wave = values.reshape(n_wanted, form.n_channels).mean(axis=1, dtype=np.float64).astype(np.float32)
    return Sound(wave=wave, rate=form.rate, n_channels=form.n_channels, seconds=n_values / form.rate)


def _numbers(data: bytes, form: _Format) -> npt.NDArray[np.floating]:
    """The stored values; whole numbers as shares of the largest."""
    if form.encoding == _FLOAT:
        return np.frombuffer(data, f"<f{form.bits // 8}")
    if form.bits == 8:
        return (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128
    if form.bits == 24:
        filled = np.zeros((len(data) // 3, 4), np.uint8)
        filled[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return filled.view("<i4")[:, 0] / np.float64(2**31)
    return np.frombuffer(data, f"<i{form.bits // 8}") / np.float64(2 ** (form.bits - 1))
