"""Names and numbers of things in messages, and what files hold as safe plain text.

A name in a file may hold anything: control characters, lone surrogates, a megabyte. What is shown is one printable
line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_LONGEST = 120


def shown(text: object, longest: int = _LONGEST) -> str:
    """The text on one printable line, cut after `longest` characters; what cannot be printed is escaped."""
    whole = str(text)
    clean = printable(whole[:longest])
    return clean if len(whole) <= longest else f"{clean}..."


def shown_end(text: str) -> str:
    """The same with a long text's last 120 characters: names of tensors differ at their end."""
    clean = printable(text[-_LONGEST:])
    return clean if len(text) <= _LONGEST else f"...{clean}"


def printable(text: str) -> str:
    """The text with what cannot be printed escaped, line ends too."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def file_name(path: Path) -> str:
    """The last part of a path, whole where it has none, as printable text, whatever bytes it has on disk."""
    return shown(os.fsencode(path.name or path).decode("utf-8", "backslashreplace"))


def some_of(names: Iterable[str], most: int = 3) -> str:
    """The first few names and how many more there are: "a, b, c and 4 more"."""
    every = list(names)
    text = ", ".join(shown(name) for name in every[:most])
    return text if len(every) <= most else f"{text} and {len(every) - most} more"


def counted(n: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 tensor", "3 tensors", "3 matrices"."""
    return f"{n} {noun}" if n == 1 else f"{n} {plural or f'{noun}s'}"
