"""What the export asks the engine: a preview, a figure in a file, numbers in a file or for the clipboard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from explorer.figures.spec import FigureSpec, Provenance
from explorer.state.queries import LaneName, Query, TraceQuery
from explorer.viewmodels.records import Span


@dataclass(frozen=True, kw_only=True)
class Preview:
    """A figure as it will be: the bytes of its PNG, and the characters that no installed font has."""

    png: bytes
    unprintable: str


@dataclass(frozen=True, kw_only=True)
class PreviewQuery(Query[Preview]):
    """How will this figure look in a file of this format? Answer: Preview."""

    lane: ClassVar[LaneName] = "io"
    failed: ClassVar[str] = "The figure cannot be drawn"
    spec: FigureSpec
    format: str


@dataclass(frozen=True, kw_only=True)
class FigureQuery(Query[Path]):
    """Write this figure. Answer: the path."""

    lane: ClassVar[LaneName] = "io"
    failed: ClassVar[str] = "The figure cannot be saved"
    spec: FigureSpec
    path: Path


@dataclass(frozen=True, kw_only=True)
class TableQuery(Query[Path | str]):
    """Write the exact weights of one head, whole or in part, as the file's name says. Answer: the path.

    Without a path the answer is the CSV as text.
    """

    failed: ClassVar[str] = "The numbers cannot be saved"
    trace: TraceQuery
    provenance: Provenance
    rows: Span | None = None
    cols: Span | None = None
    path: Path | None = None
