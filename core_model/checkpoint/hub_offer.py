"""What a download from the Hugging Face Hub would fetch, known before anything is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.wording import counted


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a download would fetch: bytes by file name, and how many of all are not in the cache, with what is free."""

    repository: str
    commit: str
    files: Mapping[str, int]
    n_missing: int
    n_free: int

    @property
    def n_bytes(self) -> int:
        """Of all files."""
        return sum(self.files.values())

    @property
    def told(self) -> str:
        """The same in a sentence without its full stop."""
        there = "" if self.n_missing == self.n_bytes else f", of which {size_text(self.n_missing)} are to be fetched"
        return (
            f"{counted(len(self.files), 'file')}, {size_text(self.n_bytes)}{there}; {size_text(self.n_free)} are free"
        )


def size_text(n_bytes: int) -> str:
    """Bytes as the Hub's own pages tell them, in units of 1000."""
    if n_bytes >= 1e9:
        return f"{n_bytes / 1e9:.1f} GB"
    return f"{n_bytes / 1e6:.0f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.0f} kB"
