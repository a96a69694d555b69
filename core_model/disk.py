"""Writing a file whole or not at all; and why a disk refuses, in words of our own, with the next step."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_REASONS = {
    errno.EDQUOT: ("your disk quota is used up", "free some space or choose another disk"),
    errno.EACCES: ("writing there is not allowed", "choose another folder"),
    errno.EPERM: ("writing there is not allowed", "choose another folder"),
    errno.EROFS: ("the disk is read-only", "choose another folder"),
    errno.ENOENT: ("its folder does not exist", "make it or choose another one"),
    errno.ENOTDIR: ("part of its path is a file, not a folder", "choose another folder"),
    errno.EEXIST: ("something of that name is there already", "choose another folder"),
    errno.EISDIR: ("a folder has that name", "choose another name"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
    errno.EIO: ("the disk reports an error of its own", "check it or choose another disk"),
}
"""What the disk says and what to do, where the place can be chosen."""

_TOLD = re.compile(r"(?:os error|code:) (\d+)")
"""The number of the system's error within a text of Rust's: "No space left on device (os error 28)"."""


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` only when the block ends well; OSError when the disk refuses.

    It is on the disk before it takes the name, so that a crash of the machine leaves one or the other. The temporary
    sibling is gone afterwards, whatever happens. Where `path` is a link, the file behind it is replaced.
    """
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def why_not_written(error: OSError, path: Path) -> str:
    """The reason why `path` could not be written, and what to do: ends a sentence, without its full stop."""
    return "; ".join(_told(error, path))


def what_refuses(error: OSError, path: Path) -> str:
    """The reason alone, for a place that nobody chose."""
    return _told(error, path)[0]


def _told(error: OSError, path: Path) -> tuple[str, str]:
    if error.errno == errno.ENOSPC:
        full = f"the disk is full ({free_bytes(path) / 2**20:.0f} MiB free)"
        return full, "free some space or choose another disk"
    return _REASONS.get(error.errno or 0, (error.strerror or str(error), "choose another place"))


def error_told_in(text: str, path: Path) -> OSError | None:
    """The system's error within a text of a library's own, such as safetensors'; None where there is none."""
    told = _TOLD.search(text)
    return OSError(int(told[1]), os.strerror(int(told[1])), str(path)) if told else None


def free_bytes(path: Path) -> int:
    """What the disk of `path`, or of the folder in which it would be made, has room for."""
    return shutil.disk_usage(existing_parent(path)).free


def existing_parent(path: Path) -> Path:
    """The path itself, or the nearest folder above it that is there."""
    return next(place for place in (path.absolute(), *path.absolute().parents) if os.path.exists(place))
