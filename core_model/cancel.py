"""A request to stop, shared between the one who asks and the one who works."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from core_model.errors import Cancelled

Progress: TypeAlias = Callable[[float], None]
"""Called by long work with the fraction done, 0 to 1, on the thread that works."""


class CancelToken:
    """Set once by any thread; long work calls `check` between its pieces."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask the work to stop at its next check."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether stopping was asked for."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise Cancelled when stopping was asked for."""
        if self._event.is_set():
            raise Cancelled("stopped on request")
