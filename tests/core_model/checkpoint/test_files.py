"""Reading safetensors files: what is refused and why, how values are widened, and what happens when files change."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.files import PIECE_BYTES, SafetensorsFile
from core_model.checkpoint.header import MAX_HEADER_BYTES, HeaderError, parse_header
from core_model.checkpoint.stored_types import STORED_TYPES
from core_model.errors import CheckpointError
from tests.core_model.checkpoint import tiny


def written(path: Path, header: object, data: bytes = b"", length: int | None = None) -> Path:
    """A file with this header, whatever it says, and these bytes of data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def entry(begin: int = 0, end: int = 8, **changes: object) -> dict[str, object]:
    """A valid description of two float32, with changes."""
    return {"dtype": "F32", "shape": [2], "data_offsets": [begin, end], **changes}


Opener: TypeAlias = Callable[[Path], SafetensorsFile]


@pytest.fixture
def opened() -> Iterator[Opener]:
    """Opens files that are closed when the test ends."""
    files: list[SafetensorsFile] = []

    def open_file(path: Path) -> SafetensorsFile:
        files.append(SafetensorsFile(path))
        return files[-1]

    yield open_file
    for file in files:
        file.close()


def refusal(path: Path) -> str:
    """What opening the file is refused with."""
    with pytest.raises(CheckpointError) as caught:
        SafetensorsFile(path)
    assert caught.value.path == path
    return str(caught.value)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"[]", "not a JSON object"),
        (b"{ ", "not valid JSON"),
        (b'{"a": NaN}', "NaN"),
        (b"\xff\xfe", "UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": {}, "a": {}}', "'a' twice"),
        ({"a": 5}, "'a' by 5"),
        ({"a": entry(dtype="F17")}, "'F17'"),
        ({"a": entry(dtype=5)}, "unknown dtype 5"),
        ({"a": entry(shape=[-2])}, "shape"),
        ({"a": entry(shape=[2.0])}, "shape"),
        ({"a": entry(shape=[True, 2])}, "shape"),
        ({"a": entry(shape=[2**40, 2**40])}, "has a size of"),
        ({"a": entry(shape=[2**63])}, "shape"),
        ({"a": entry(shape=[1] * 65)}, "at most 64"),
        ({"a": entry(shape="2")}, "shape"),
        ({"a": entry(shape=[3])}, "has a size of 12"),
        ({"a": entry(data_offsets=[0])}, "data_offsets"),
        ({"a": entry(data_offsets=[8, 0])}, "data_offsets"),
        ({"a": entry(data_offsets=None)}, "data_offsets"),
        ({"a": entry(), "b": entry(4, 12)}, "overlap"),
        ({"a": entry(4, 12)}, "hole of 4 bytes"),
        ({"a": entry(), "b": entry(12, 20)}, "hole of 4 bytes"),
        ({"a": entry(dtype="F4", shape=[3], data_offsets=[0, 1])}, "has a size of 2"),
        ({"__metadata__": {"a": 1}}, "__metadata__"),
        ({"__metadata__": "text"}, "__metadata__"),
    ],
    ids=str,
)
def test_a_broken_header_is_refused_with_its_reason(header: object, reason: str, tmp_path: Path) -> None:
    assert reason in refusal(written(tmp_path / "model.safetensors", header, bytes(8)))


def test_a_file_with_less_or_more_data_than_its_header_says_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    assert "truncated" in refusal(written(path, {"a": entry()}, bytes(7)))
    assert "1 extra bytes" in refusal(written(path, {"a": entry()}, bytes(9)))


@pytest.mark.parametrize(
    ("length", "reason"),
    [(0, "header of 0 bytes"), (MAX_HEADER_BYTES + 1, "at most"), (2**64 - 1, "at most"), (1000, "truncated inside")],
)
def test_an_impossible_header_length_is_refused(length: int, reason: str, tmp_path: Path) -> None:
    assert reason in refusal(written(tmp_path / "model.safetensors", {"a": entry()}, bytes(8), length=length))


@pytest.mark.parametrize(
    ("content", "what", "next_step"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 5\n", "Git LFS pointer", "git lfs pull"),
        (b"<!DOCTYPE html><html>", "web page", "download"),
        (b"  <html>", "web page", "download"),
        (b"PK\x03\x04" + b"\0" * 30 + b"archive/data.pkl", "PyTorch", "safetensors"),
        (b"PK\x03\x04" + b"\0" * 30 + b"weight.npy", "numpy archive", "safetensors"),
        (b"PK\x03\x04" + b"\0" * 30 + b"readme", "zip archive", "unpack"),
        (b"\x80\x02}q\x00.", "pickle", "safetensors"),
        (b"GGUF\x03\0\0\0", "GGUF", "safetensors"),
        (b"\x89HDF\r\n\x1a\n", "HDF5", "safetensors"),
        (b"\x93NUMPY\x01\0", "numpy array", "safetensors"),
        (gzip.compress(b"weights"), "compressed", "decompress"),
        (b"\x08\x08\x12\x07pytorch", "ONNX", "safetensors"),
        (b'{"error": "Access to model x/y is restricted"}', "JSON", "download"),
        (b"(weights removed)\n", "a text", "download"),
        (bytes(4096), "all zeros", "download"),
        (b"\x00\x05\x16\x07\x00\x02", "AppleDouble", "._"),
        (b"", "empty", "download"),
        (b"\x01\x02\x03", "cannot hold a header", "download"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_formats_are_named_with_the_next_step(content: bytes, what: str, next_step: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    text = refusal(path)
    assert what in text
    assert next_step in text
    assert text.startswith("model.safetensors ")


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    os.mkfifo(path)
    assert "not a regular file" in refusal(path)


def test_names_that_cannot_be_printed_are_escaped_in_messages(tmp_path: Path) -> None:
    header = {"\ud800\n\x1b[31m" + "x" * 5000: entry(dtype="F17")}
    text = refusal(written(tmp_path / "model.safetensors", header, bytes(8)))
    assert text.isprintable()
    assert len(text) < 1000


@pytest.mark.parametrize(
    "code", ["BF16", "F16", "F32", "F64", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0"]
)
def test_every_float_is_widened_as_torch_widens_it(code: str, tmp_path: Path, opened: Opener) -> None:
    raw = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(torch.uint8)
    stored = raw.view(getattr(torch, STORED_TYPES[code].name))
    path = tmp_path / "model.safetensors"
    header = {"x": {"dtype": code, "shape": list(stored.shape), "data_offsets": [0, raw.numel()]}}
    written(path, header, raw.numpy().tobytes())
    np.testing.assert_array_equal(opened(path).read("x"), stored.float().numpy())


def test_bfloat16_is_the_upper_half_of_a_float32(tmp_path: Path, opened: Opener) -> None:
    header = {"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}
    path = written(tmp_path / "model.safetensors", header, b"\x80\x3f\x00\xc0")
    assert opened(path).read("x").tolist() == [1.0, -2.0]


@pytest.mark.parametrize("dtype", ["bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"])
def test_whole_numbers_are_shown_as_floats(dtype: str, tmp_path: Path, opened: Opener) -> None:
    values = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    save_file({"x": values}, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(opened(tmp_path / "model.safetensors").read("x"), values)


@pytest.mark.parametrize("shape", [(), (0,), (0, 5), (1, 1, 1), (2, 3, 5)])
def test_every_shape_is_read_as_it_is(shape: tuple[int, ...], tmp_path: Path, opened: Opener) -> None:
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    save_file({"x": values, "y": np.array([7], np.float32)}, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(opened(tmp_path / "model.safetensors").read("x"), values)


def test_a_format_that_cannot_be_shown_is_listed_and_reading_it_says_so(tmp_path: Path, opened: Opener) -> None:
    header = {"x": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}
    file = opened(written(tmp_path / "model.safetensors", header, bytes(2)))
    assert file.entries["x"].shape == (4,)
    with pytest.raises(CheckpointError, match="float4"):
        file.read("x")


def test_spaces_around_the_header_and_unaligned_data_are_allowed(tmp_path: Path, opened: Opener) -> None:
    data = np.array([1.5, -2.0], np.float32).tobytes()
    for text in (b"  %s", b"%s   ", b"%s"):
        path = written(tmp_path / "model.safetensors", text % json.dumps({"a": entry()}).encode(), data)
        assert opened(path).read("a").tolist() == [1.5, -2.0]


def test_part_of_a_tensor_is_read_without_the_rest(tmp_path: Path, opened: Opener) -> None:
    values = np.arange(12, dtype=np.float16).reshape(3, 4)
    save_file({"x": values}, tmp_path / "model.safetensors")
    assert opened(tmp_path / "model.safetensors").read("x", 5, 8).tolist() == [5, 6, 7]


def test_a_large_tensor_is_widened_in_pieces(tmp_path: Path, opened: Opener) -> None:
    """safetensors#598: widening must not double the tensor in memory."""
    values = np.ones(8 * PIECE_BYTES // 2, dtype=np.float16)
    save_file({"x": values}, tmp_path / "model.safetensors")
    file = opened(tmp_path / "model.safetensors")
    tracemalloc.start()
    total = sum(float(piece.sum()) for _, piece in file.pieces("x"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == values.size
    assert peak < 6 * PIECE_BYTES, "the whole tensor as float32 takes 16"


def test_metadata_is_free_text_and_never_a_tensor(tmp_path: Path, opened: Opener) -> None:
    save_file(
        {"x": np.array([1], np.float32)}, tmp_path / "model.safetensors", metadata={"format": "pt", "note": "<b>"}
    )
    file = opened(tmp_path / "model.safetensors")
    assert list(file.entries) == ["x"]
    assert file.metadata == {"format": "pt", "note": "<b>"}


def _overwrite(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4] + bytes(4))
    os.utime(path, ns=(1, 1))


def _cut_short(path: Path) -> None:
    os.truncate(path, 20)


@pytest.mark.parametrize("change", [_overwrite, _cut_short])
def test_a_file_changed_in_place_while_open_is_refused(
    change: Callable[[Path], None], tmp_path: Path, opened: Opener
) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"x": np.array([1, 2], np.float32)}, path)
    file = opened(path)
    change(path)
    with pytest.raises(CheckpointError, match="changed since it was opened"):
        file.read("x")


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps open files from being deleted, for good")
def test_a_file_deleted_or_replaced_while_open_is_still_read(tmp_path: Path, opened: Opener) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"x": np.array([1, 2], np.float32)}, path)
    file = opened(path)
    path.unlink()
    save_file({"y": np.array([3], np.float32)}, path)
    assert file.read("x").tolist() == [1, 2]


def test_closing_releases_the_file(tmp_path: Path, opened: Opener) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"x": np.array([1, 2], np.float32)}, path)
    file = opened(path)
    file.close()
    file.close()
    with pytest.raises(CheckpointError, match="closed"):
        file.read("x")
    held = [os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd") if _is_link(number)]
    assert str(path) not in held


def _is_link(number: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{number}")


# Anything may be in a file


_NUMBERS = st.one_of(st.integers(-2, 40), st.integers(2**62, 2**65), st.floats(), st.booleans(), st.none())
_ENTRY = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "dtype": st.one_of(st.sampled_from([*STORED_TYPES, "F17", ""]), _NUMBERS),
            "shape": st.one_of(st.lists(_NUMBERS, max_size=4), _NUMBERS),
            "data_offsets": st.one_of(st.lists(_NUMBERS, max_size=3), _NUMBERS),
            "extra": _NUMBERS,
        },
    ),
    _NUMBERS,
)
_HEADER = st.dictionaries(st.text(max_size=8) | st.just("__metadata__"), _ENTRY, max_size=5)
_BYTES = st.one_of(
    st.binary(max_size=64),
    st.builds(
        lambda header, data, off: (len(header) + off).to_bytes(8, "little", signed=False) + header + data,
        st.one_of(_HEADER.map(lambda h: json.dumps(h).encode()), st.binary(max_size=40)),
        st.binary(max_size=80),
        st.sampled_from([0, 0, 0, 1, 7, 10**6]),
    ),
)


@settings(max_examples=500)
@given(content=_BYTES)
def test_any_bytes_are_a_file_or_a_refusal(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(content)
    try:
        file = SafetensorsFile(path)
    except CheckpointError as error:
        assert str(error).isprintable()
        return
    try:
        for name, described in file.entries.items():
            if described.dtype.widen is not None:
                assert file.read(name).shape == described.shape
    finally:
        file.close()


@settings(max_examples=200)
@given(
    tensors=st.dictionaries(
        st.text(min_size=1, max_size=6, alphabet=st.characters(exclude_categories=["Cs"])).filter(
            lambda name: name != "__metadata__"
        ),
        st.tuples(st.lists(st.integers(0, 3), max_size=3), st.sampled_from(["f4", "f2", "f8", "i4", "u1"])),
        min_size=1,
        max_size=5,
    )
)
def test_what_the_safetensors_library_writes_is_read_alike(
    tensors: dict[str, tuple[list[int], str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "theirs.safetensors"
    rng = np.random.default_rng(0)
    save_file({name: rng.normal(size=shape).astype(dtype) for name, (shape, dtype) in tensors.items()}, path)
    file = SafetensorsFile(path)
    expected: dict[str, Any] = load_file(path)
    assert file.entries.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(file.read(name), values.astype(np.float32))
    file.close()


def test_the_header_parser_refuses_by_its_own_error() -> None:
    with pytest.raises(HeaderError):
        parse_header(b"null")


@pytest.mark.parametrize("part", ["[],", "{},", "0,", '"",', "[["])
def test_a_header_of_a_million_values_is_refused_before_any_is_made(part: str) -> None:
    text = ('{"a":[' + part * 1_000_000 + "0]}").encode()
    tracemalloc.start()
    try:
        with pytest.raises(HeaderError, match="holds more than 1000000 values"):
            parse_header(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_a_config_of_a_million_values_is_refused_before_any_is_made(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path)
    (folder / "config.json").write_text('{"a":[' + "[]," * 1_000_000 + "0]}")
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.refusal is not None
        assert "config.json holds more than 1000000 values" in checkpoint.info.refusal
