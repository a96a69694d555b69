"""Pause, single steps and stop of a running training, asked for from another thread."""

from __future__ import annotations

import threading

from core_model.cancel import CancelToken

_CANCEL_POLL_SECONDS = 0.05
"""A paused training looks this often whether it was cancelled: a CancelToken wakes nobody."""


class TrainControl:
    """The person's side calls pause, resume, step and stop; the loop calls `admit` before every update. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._paused = False
        self._stopped = False
        self._n_single = 0

    @property
    def paused(self) -> bool:
        """Whether updates wait to be asked for."""
        return self._paused

    @property
    def stopped(self) -> bool:
        """Whether no update will follow."""
        return self._stopped

    def pause(self) -> None:
        """Hold the training before its next update."""
        with self._changed:
            self._paused = True

    def resume(self) -> None:
        """Let the training go on."""
        with self._changed:
            self._paused, self._n_single = False, 0
            self._changed.notify_all()

    def step(self) -> None:
        """Pause, but for one more update."""
        with self._changed:
            self._paused = True
            self._n_single += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """End the training before its next update; what it has learned is kept."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def admit(self, cancel: CancelToken) -> bool:
        """Whether the next update may run; blocks while paused. Raises Cancelled. Called by the loop's thread."""
        with self._changed:
            while self._paused and not self._n_single and not self._stopped and not cancel.cancelled:
                self._changed.wait(_CANCEL_POLL_SECONDS)
            cancel.check()
            self._n_single = max(self._n_single - 1, 0)
            return not self._stopped
