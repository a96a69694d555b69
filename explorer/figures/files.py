"""Formats by file name, and writing a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from core_model.disk import why_not_written
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
    """A file to write that takes the place of `path` only when the block ends well; ExportError when the disk refuses.

    The temporary sibling is gone afterwards, whatever happens. Where `path` is a link, the file behind it is replaced.
    """
    target = path.resolve()
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        raise ExportError(f"Cannot write {path}: {why_not_written(error, path)}.") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
