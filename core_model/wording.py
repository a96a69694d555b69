"""What files hold as safe plain text, for messages.

A name in a file may hold anything: control characters, lone surrogates, a megabyte. What is shown is one printable
line.
"""

from __future__ import annotations

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
