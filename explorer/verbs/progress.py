"""How far a command is, on stderr: one line that is overwritten where a person looks, nothing where a file does."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from core_model.cancel import Progress

PATIENCE_SECONDS = 0.3
_INTERVAL_SECONDS = 0.1
_BAR = 24


class ProgressLine:
    """Shows a fraction after PATIENCE_SECONDS, ten times a second; leaving the block clears the line."""

    def __init__(self, title: str) -> None:
        self._title = title
        self.is_live = sys.stderr.isatty()
        self._next = time.monotonic() + PATIENCE_SECONDS
        self._is_shown = False
        self._is_heard = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()

    @property
    def update(self) -> Progress:
        """To be called with the fraction done."""
        return self.show

    def show(self, fraction: float, text: str = "") -> None:
        """Overwrite the line, if it is time."""
        now = time.monotonic()
        if self.is_live and now >= self._next:
            self._next = now + _INTERVAL_SECONDS
            self._is_shown = True
            self._write(f"\r{self._title} {bar(fraction)} {fraction:4.0%} {text}\x1b[K")

    def note(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        self._write(f"{text}\n")

    def clear(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._is_shown = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        """Say it, as long as somebody listens: work is not given up because the log of it is on a full disk."""
        if self._is_heard:
            try:
                sys.stderr.write(text)
                sys.stderr.flush()
            except BrokenPipeError:
                raise
            except OSError:
                self._is_heard = False


def bar(fraction: float) -> str:
    """[######------] of a fixed width."""
    full = round(min(1.0, max(0.0, fraction)) * _BAR)
    return f"[{'#' * full}{'-' * (_BAR - full)}]"
