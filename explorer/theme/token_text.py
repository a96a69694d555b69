"""How a token is written: a space shows as a middle dot, a newline as a return sign, both dimmed.

What is no token of a text, such as a patch of a picture, has a `Name`, written as it is.
"""

from collections.abc import Iterator
from itertools import groupby

_SIGNS = {" ": "\u00b7", "\n": "\u21b5", "\r": "\u240d", "\t": "\u21e5"}
_EMPTY = "\u2205"
_ELLIPSIS = "\u2026"


class Name(str):
    """A word or two that stand where a token would."""

    __slots__ = ()


class Reading(Name):
    """A Name that says how far along a scale it stands, such as a time: some will do where not all fit."""

    __slots__ = ()


def token_runs(token: str, limit: int | None = None) -> tuple[tuple[str, bool], ...]:
    """Split a token into (text, dimmed) runs, cut to `limit` characters with an ellipsis."""
    return tuple((text, dimmed) for text, dimmed in _runs(token, limit) if text)


def token_text(token: str, limit: int | None = None) -> str:
    """The same as one plain text, for widths, tooltips and accessible names."""
    return "".join(text for text, _ in _runs(token, limit))


def _runs(token: str, limit: int | None) -> Iterator[tuple[str, bool]]:
    if not token:
        yield _EMPTY, True
        return
    is_cut = limit is not None and len(token) > limit
    shown = token[: limit - 1] if limit is not None and is_cut else token
    if isinstance(token, Name):
        yield shown, False
        shown = ""
    for dimmed, characters in groupby(shown, key=_is_sign):
        yield "".join(_SIGNS.get(c, c if c.isprintable() else f"\\x{ord(c):02x}") for c in characters), dimmed
    if is_cut:
        yield _ELLIPSIS, True


def _is_sign(character: str) -> bool:
    return character in _SIGNS or not character.isprintable()
