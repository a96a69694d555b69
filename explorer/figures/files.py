"""What a file name says of the format, and writing there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from core_model import disk
from core_model.errors import CoreError

FIGURE_FORMATS = ("svg", "pdf", "png")
DATA_FORMATS = ("csv", "npz")
FORMATS = FIGURE_FORMATS + DATA_FORMATS


class ExportError(CoreError):
    """A figure or table that cannot be made or written as asked."""


def format_of(path: Path) -> str:
    """The format that the file name asks for; ExportError for one that cannot be written."""
    name = path.suffix.lower().removeprefix(".")
    if name not in FORMATS:
        found = f"ends in {path.suffix!r}" if path.suffix else "has no ending"
        raise ExportError(f"{path.name!r} {found}: give it one of {', '.join('.' + known for known in FORMATS)}.")
    return name


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """`core_model.disk.whole_file`, where what the disk refuses is an ExportError."""
    try:
        with disk.whole_file(path) as file:
            yield file
    except OSError as error:
        raise ExportError(f"Cannot write {path}: {disk.why_not_written(error, path)}.") from error
