"""How often to draw what never stops changing: as often as leaves others the time."""

from __future__ import annotations

import time
from collections.abc import Callable

_SHARE = 0.07
"""Of a core that drawing may take from a training, which needs Python's lock as much as it: a tiny one loses half as
much again, for it waits for the lock at every operation."""
_LONGEST_PAUSE = 0.25
"""Seconds after which a frame is due whatever it costs."""


class Pace:
    """Says when the next frame is due, by the processor time that its thread has used since the last one.

    So the cost of painting counts, which comes later than the call that asks for it. Ask on one thread only. The clocks
    give seconds: `clock` those that pass, `used` those that this thread has computed.
    """

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, used: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock, self._used = clock, used
        self._last = float("-inf"), 0.0

    def is_due(self) -> bool:
        """Whether to draw now; then the time counts anew."""
        now = self._clock(), self._used()
        passed, cost = (new - old for new, old in zip(now, self._last, strict=True))
        if cost > _SHARE * passed and passed < _LONGEST_PAUSE:
            return False
        self._last = now
        return True
