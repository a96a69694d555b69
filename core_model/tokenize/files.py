"""Reading tokenizer files safely: every fault is one sentence that names the file and the next step."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TypeVar

import msgspec

from core_model.errors import TokenizerError
from core_model.json_size import MOST_VALUES, n_values
from core_model.wording import shown

T = TypeVar("T")

_TIKTOKEN_LINE = re.compile(rb"[A-Za-z0-9+/]+=* \d+\r?\n")

SIZE_LIMIT = 64 * 2**20
"""Bytes. The largest tokenizers published have 35 MB."""
MOST_LINES = 600_000
"""More than twice as many as the largest vocabulary that is published in lines has tokens."""


def present(folder: Path, name: str) -> bool:
    """Whether `folder` has an entry of that name, be it a broken link."""
    return os.path.lexists(folder / name)


def fault(path: Path, what: str) -> TokenizerError:
    """The error for a tokenizer file that cannot be used; of what the file spells, the unprintable is escaped."""
    return TokenizerError(f"The tokenizer file {path.name} {shown(what, longest=len(what))} ({path})")


def read_bytes(path: Path) -> bytes:
    """The whole file; TokenizerError when it is not a file, is empty or too large, or is something else in disguise."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise fault(path, "is not a file: put the model's own tokenizer file there")
        if status.st_size > SIZE_LIMIT:
            raise fault(
                path,
                f"has {status.st_size:,} bytes, more than the limit of {SIZE_LIMIT:,}: use the model's own file",
            )
        data = path.read_bytes()
    except OSError as error:
        raise fault(path, f"cannot be read ({error.strerror}): check the file and its permissions") from error
    if not data:
        raise fault(path, "is empty (0 bytes): download it again")
    start = data[:200].lstrip().lower()
    if start.startswith(b"version https://git-lfs"):
        raise fault(path, "is a Git LFS pointer, not the file itself: run `git lfs pull` or download it again")
    if start.startswith((b"<!doctype html", b"<html")):
        raise fault(path, "is a web page, not a tokenizer: download the raw file again")
    return data


def is_tiktoken(path: Path) -> bool:
    """Whether a file begins as tiktoken's do: on each line a token in base64 and its rank."""
    return _TIKTOKEN_LINE.match(read_bytes(path)) is not None


def read_text(path: Path) -> str:
    """The whole file as text; TokenizerError when it is not UTF-8."""
    return decode_text(path, read_bytes(path))


def decode_text(path: Path, data: bytes) -> str:
    """`data` of `path` as text, without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fault(
            path,
            f"is not UTF-8 (byte 0x{data[error.start]:02X} at offset {error.start}): save it as UTF-8",
        ) from error


def read_lines(path: Path) -> list[str]:
    """Lines of the file, ended by LF or CRLF only (a vocabulary may hold other line separators as tokens)."""
    data = read_bytes(path)
    require_few_lines(path, data)
    lines = [line.removesuffix("\r") for line in decode_text(path, data).split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def require_few_lines(path: Path, data: bytes) -> None:
    """Refuse a file of more lines than a vocabulary has, before they are taken apart."""
    if data.count(b"\n") > MOST_LINES:
        raise fault(path, f"has more than {MOST_LINES:,} lines: use the model's own file")


def read_json(path: Path, shape: type[T]) -> T:
    """The file decoded into `shape`; TokenizerError when it is not JSON of that shape."""
    return decode_json(path, read_bytes(path), shape)


def decode_json(path: Path, data: bytes, shape: type[T], *, most: int = MOST_VALUES) -> T:
    """`data` of `path`, of at most so many values, decoded into `shape`."""
    if n_values(data) > most:
        raise fault(path, f"holds more than {most:,} values: use the model's own file")
    text = decode_text(path, data)
    try:
        return msgspec.json.decode(text, type=shape)
    except RecursionError as error:
        raise fault(path, "is nested too deeply to be a tokenizer's JSON: download it again") from error
    except msgspec.ValidationError as error:
        raise fault(path, f"does not have the expected fields ({shown(error)}): download it again") from error
    except msgspec.DecodeError as error:
        raise fault(path, f"is not valid JSON ({shown(error)}): download it again") from error
