"""A picture or a sound that a model is given: which file, and as it was then."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

FileKind: TypeAlias = Literal["picture", "sound"]

SUFFIXES: dict[FileKind, tuple[str, ...]] = {
    "picture": (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    "sound": (".wav", ".mp3", ".flac", ".ogg", ".m4a"),
}
"""Endings by which a dropped file is known for what it is, readable or not."""


@dataclass(frozen=True, kw_only=True)
class GivenFile:
    """A file as it was when it was given: one that has changed since is another input.

    `stamp` is its size in bytes and the time of its last change in ns; None where there was no such file.
    """

    path: Path
    stamp: tuple[int, int] | None

    @classmethod
    def at(cls, path: Path) -> GivenFile:
        """The file at a path, as it is now."""
        try:
            facts = path.stat()
        except OSError:
            return cls(path=path, stamp=None)  # reading it says why
        return cls(path=path, stamp=(facts.st_size, facts.st_mtime_ns))

    @property
    def name(self) -> str:
        return self.path.name


def kind_of(path: Path) -> FileKind | None:
    """What a file is by its ending; None where it is neither."""
    return next((kind for kind, suffixes in SUFFIXES.items() if path.suffix.lower() in suffixes), None)
