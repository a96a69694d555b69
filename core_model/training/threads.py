"""How many threads a training uses: found by timing its first updates, for tiny models are fastest with one.

Each number of threads adds up in an order of its own, so losses may differ in their last digits.
"""

from __future__ import annotations

import os

import torch

from core_model.errors import ConfigError

UPDATES_EACH = 3
"""Updates timed with each candidate; the fastest counts, so that a hiccup decides nothing."""
WORTH_MORE_THREADS = 1.25
"""More threads must be this much faster: on a busy machine any of them is held up, and all wait for the slowest."""


class ThreadTrial:
    """Sets torch's number of threads before each update until all candidates were timed; then the best stays."""

    def __init__(self, fixed: int | None, device: torch.device) -> None:
        """`fixed` is used where given; ConfigError when there are fewer cores: torch crashes on far too many threads.

        On a GPU threads hardly matter, so there they stay as they are.
        """
        if fixed and fixed > _n_cores():
            raise ConfigError(f"threads is {fixed}: {_n_cores()} cores may be used here, so choose no more")
        self._waiting = [] if fixed or device.type != "cpu" else _candidates() * UPDATES_EACH
        self._fastest: dict[int, float] = {}
        self._current = fixed or torch.get_num_threads()

    @property
    def chosen(self) -> int:
        """The number of threads in use."""
        return self._current

    def before_update(self) -> None:
        """Set the number of threads of the next update; called by the thread that trains."""
        if self._waiting:
            self._current = self._waiting.pop()
        elif self._fastest:
            enough = min(self._fastest.values()) * WORTH_MORE_THREADS
            self._current = min(n for n, seconds in self._fastest.items() if seconds <= enough)
            self._fastest = {}
        if torch.get_num_threads() != self._current:
            torch.set_num_threads(self._current)

    def after_update(self, seconds: float) -> None:
        """Tell how long the update took."""
        if self._waiting or self._fastest:
            self._fastest[self._current] = min(seconds, self._fastest.get(self._current, seconds))


def _candidates() -> list[int]:
    """1, 2, 4, ... threads, up to one a core."""
    n_cores = _n_cores()
    return [2**power for power in range(n_cores.bit_length()) if 2**power <= n_cores]


def _n_cores() -> int:
    """The cores this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
