"""Names and numbers of things in messages; what comes from a file goes through `shown`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import Path

from core_model.wording import shown


def file_name(path: Path) -> str:
    """The last part of a path, whole where it has none, as printable text, whatever bytes it has on disk."""
    return shown(os.fsencode(path.name or path).decode("utf-8", "backslashreplace"))


def some_of(names: Collection[str] | Iterable[str], most: int = 3) -> str:
    """The first few names and how many more there are: "a, b, c and 4 more"."""
    every = list(names)
    text = ", ".join(shown(name) for name in islice(every, most))
    return text if len(every) <= most else f"{text} and {len(every) - most} more"


def counted(n: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 tensor", "3 tensors", "3 matrices"."""
    return f"{n} {noun}" if n == 1 else f"{n} {plural or f'{noun}s'}"
