"""A sheet of named facts in sections: what the inspector and the model card show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Mark: TypeAlias = Literal["", "inferred", "unknown", "warning", "error", "ok"]


@dataclass(frozen=True, kw_only=True)
class FactRow:
    """One fact. `role` is a theme colour for the value; `mark` says how sure or grave it is; `name` may be empty."""

    name: str
    value: str
    mark: Mark = ""
    role: str = ""
    is_token: bool = False
    """Written in the token font, with signs for spaces."""
    tooltip: str = ""


@dataclass(frozen=True, kw_only=True)
class FactSection:
    """Facts that belong together, under a title."""

    title: str
    rows: tuple[FactRow, ...]


@dataclass(frozen=True, kw_only=True)
class FactSheet:
    """All sections in reading order."""

    sections: tuple[FactSection, ...]
