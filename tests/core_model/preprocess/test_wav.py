"""WAV files of every kind of number, and files that are none."""

from __future__ import annotations

import struct
import tracemalloc
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_model.errors import InputError
from core_model.preprocess.wav import read_wav

WHOLE, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
LEVELS = np.array([0, 0.5, -0.5, 0.25, -1, 0.75])
"""What all kinds of numbers can say exactly."""


def chunk(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def form(encoding: int, bits: int, *, channels: int = 1, rate: int = 16000, more: bytes = b"") -> bytes:
    width = channels * bits // 8
    return struct.pack("<HHIIHH", encoding, channels, rate, rate * width, width, bits) + more


def riff(*chunks: bytes) -> bytes:
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def numbers(encoding: int, bits: int) -> bytes:
    if encoding == FLOAT:
        return LEVELS.astype(f"<f{bits // 8}").tobytes()
    if bits == 8:
        return (LEVELS * 128 + 128).astype(np.uint8).tobytes()
    whole = (LEVELS * 2 ** (bits - 1)).astype(np.int64)
    return b"".join(int(value).to_bytes(bits // 8, "little", signed=True) for value in whole)


def write(folder: Path, data: bytes) -> Path:
    path = folder / "it.wav"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("encoding", "bits"), [(WHOLE, 8), (WHOLE, 16), (WHOLE, 24), (WHOLE, 32), (FLOAT, 32), (FLOAT, 64)]
)
@pytest.mark.parametrize("is_extensible", [False, True])
def test_every_kind_of_number_says_the_same_levels(
    encoding: int, bits: int, is_extensible: bool, tmp_path: Path
) -> None:
    """An extensible format has its encoding in the first two bytes of an identifier of 16."""
    stated = form(encoding, bits)
    if is_extensible:
        identifier = struct.pack("<H", encoding) + bytes.fromhex("000000001000800000aa00389b71")
        stated = form(EXTENSIBLE, bits, more=struct.pack("<HHI", 22, bits, 0) + identifier)
    sound = read_wav(write(tmp_path, riff(chunk(b"fmt ", stated), chunk(b"data", numbers(encoding, bits)))), 30)
    np.testing.assert_array_equal(sound.wave, LEVELS.astype(np.float32))
    assert (sound.rate, sound.n_channels, sound.seconds) == (16000, 1, len(LEVELS) / 16000)


def test_what_pythons_own_writer_writes_is_read(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "own.wav"), "wb") as file:
        file.setparams((2, 2, 8000, 0, "NONE", ""))
        file.writeframes(np.array([[16384, 0], [-8192, 8192]], "<i2").tobytes())
    sound = read_wav(tmp_path / "own.wav", 30)
    assert (sound.wave.tolist(), sound.rate, sound.n_channels) == ([0.25, 0], 8000, 2)


def test_chunks_of_other_programs_are_passed_over(tmp_path: Path) -> None:
    """A chunk of an odd length is followed by a byte that it does not count."""
    data = riff(
        chunk(b"LIST", b"made by"),
        chunk(b"fmt ", form(WHOLE, 16)),
        chunk(b"fact", b"\6\0\0\0"),
        chunk(b"data", numbers(WHOLE, 16)),
        chunk(b"id3 ", b"more"),
    )
    np.testing.assert_array_equal(read_wav(write(tmp_path, data), 30).wave, LEVELS.astype(np.float32))


def test_only_the_beginning_that_is_asked_for_is_read(tmp_path: Path) -> None:
    data = riff(chunk(b"fmt ", form(WHOLE, 16, rate=1000)), chunk(b"data", bytes(2 * 5000)))
    sound = read_wav(write(tmp_path, data), 2)
    assert (len(sound.wave), sound.seconds) == (2000, 5)


def test_a_stream_of_unknown_length_goes_to_its_end(tmp_path: Path) -> None:
    """What ffmpeg writes into a pipe."""
    data = riff(chunk(b"fmt ", form(WHOLE, 16))) + b"data" + struct.pack("<I", 0xFFFFFFFF) + numbers(WHOLE, 16)
    np.testing.assert_array_equal(read_wav(write(tmp_path, data), 30).wave, LEVELS.astype(np.float32))


FMT, DATA = chunk(b"fmt ", form(WHOLE, 16)), chunk(b"data", bytes(64))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"ID3\x04 and so on, long enough", r"it\.wav is an MP3 file: save it as WAV, for example with ffmpeg"),
        (b"fLaC and so on, long enough", r"it\.wav is a FLAC file"),
        (b"OggS and so on, long enough", r"it\.wav is an Ogg file"),
        (b"RF64\xff\xff\xff\xffWAVEds64", r"it\.wav is a WAV file of more than 4 GB \(RF64\)"),
        (b"hello, this is a text", r"it\.wav is no sound that is read here"),
        (b"RIFF", "is no sound that is read here"),
        (riff(), "ends before its sound begins"),
        (riff(FMT), "ends before its sound begins"),
        (riff(DATA), "does not say how its sound is stored before it begins"),
        (riff(chunk(b"fmt ", b"12"), DATA), "does not say how its sound is stored"),
        (riff(FMT, DATA)[:-10], "ends after 54 of the 64 bytes of its sound"),
        (riff(FMT, chunk(b"data", b"")), r"holds no sound \(0 values\)"),
        (riff(chunk(b"fmt ", form(2, 4)), DATA), "is encoded as ADPCM: save it as uncompressed WAV"),
        (riff(chunk(b"fmt ", form(7, 8)), DATA), "is encoded as mu-law"),
        (riff(chunk(b"fmt ", form(333, 8)), DATA), "is encoded as number 333"),
        (riff(chunk(b"fmt ", form(WHOLE, 12)), DATA), "has values of 12 bits: expected one of 8, 16, 24, 32"),
        (riff(chunk(b"fmt ", form(WHOLE, 16, channels=0)), DATA), "has 0 channels: expected 1 to 64"),
        (riff(chunk(b"fmt ", form(WHOLE, 16, rate=0)), DATA), "has 0 values a second: expected 1000 to 1000000"),
        (riff(chunk(b"fmt ", form(WHOLE, 16, rate=2**30)), DATA), "has 1073741824 values a second"),
        (riff(chunk(b"fmt ", form(FLOAT, 32)), chunk(b"data", np.full(4, np.nan, "<f4").tobytes())), "no numbers"),
        (
            riff(chunk(b"fmt ", form(FLOAT, 64)), chunk(b"data", np.full(4, 1e300, "<f8").tobytes())),
            "beyond all measure",
        ),
    ],
)
def test_a_file_that_is_no_whole_sound_is_refused_in_a_sentence(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_wav(write(tmp_path, data), 30)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    wrong=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), min_size=1, max_size=6),
    length=st.integers(1, 108),
)
def test_a_broken_file_is_a_sound_or_a_sentence(wrong: list[tuple[int, int]], length: int, tmp_path: Path) -> None:
    data = bytearray(riff(FMT, DATA)[:length])
    for place, value in wrong:
        data[place % len(data)] = value
    try:
        sound = read_wav(write(tmp_path, bytes(data)), 1)
        assert np.isfinite(sound.wave).all() and 0 < len(sound.wave) <= sound.rate
    except InputError as error:
        assert str(error).startswith("it.wav ")


def test_a_description_that_claims_gigabytes_takes_none(tmp_path: Path) -> None:
    claimed = b"fmt " + struct.pack("<I", 1 << 31) + form(WHOLE, 16)
    (tmp_path / "a.wav").write_bytes(riff(claimed, chunk(b"data", numbers(WHOLE, 16))))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="ends before its sound begins"):
            read_wav(tmp_path / "a.wav", 30)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
