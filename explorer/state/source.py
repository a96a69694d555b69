"""Where a model comes from: what every fact about it and every question to it names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""First index and one past the last."""
Assumed: TypeAlias = tuple[tuple[str, int | str], ...]
"""Facts that a person gave because no file states them, by name."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A checkpoint to look at. `opening` counts openings, so that a path opened again is read again.

    `assume` answers what its files do not say, for example (("n_heads", 4),) or, of an adapter, (("base", path),).
    A bundled sample is not a recent file.
    """

    path: Path
    opening: int = 0
    is_sample: bool = False
    assume: Assumed = ()
