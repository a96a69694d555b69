"""Formats by file name, and writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from core_model.errors import CoreError

FIGURE_FORMATS = ("svg", "pdf", "png")
DATA_FORMATS = ("csv", "npz")
FORMATS = FIGURE_FORMATS + DATA_FORMATS

_REASONS = {
    errno.ENOSPC: "the disk is full; free some space or choose another disk.",
    errno.EDQUOT: "your disk quota is used up; free some space or choose another disk.",
    errno.EACCES: "writing there is not allowed; choose another folder.",
    errno.EPERM: "writing there is not allowed; choose another folder.",
    errno.EROFS: "the disk is read-only; choose another folder.",
    errno.ENOENT: "its folder does not exist; make it or choose another one.",
    errno.ENOTDIR: "part of its path is a file, not a folder; choose another folder.",
    errno.EISDIR: "a folder has that name; choose another name.",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one.",
}


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
        reason = _REASONS.get(error.errno or 0, f"{error.strerror or error}; choose another place.")
        raise ExportError(f"Cannot write {path}: {reason}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
