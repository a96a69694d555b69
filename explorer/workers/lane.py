"""One worker thread that answers the newest question of every slot."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from core_model.cancel import CancelToken, Progress
from core_model.errors import CoreError
from explorer.state.outcome import Outcome, Problem
from explorer.state.queries import AnyQuery

Answer: TypeAlias = Callable[[AnyQuery, CancelToken, Progress], object]


@dataclass(kw_only=True)
class _Job:
    slot: str
    query: AnyQuery
    cancel: CancelToken = field(default_factory=CancelToken)
    fraction: float | None = None

    def note_progress(self, fraction: float) -> None:
        """Overwrites the last one; the window reads it when it likes. Worker thread."""
        self.fraction = fraction


@dataclass(frozen=True, kw_only=True)
class Running:
    """What a lane is busy with. `fraction` is None until the work has told how far it is."""

    slot: str
    query: AnyQuery
    fraction: float | None


class Lane:
    """Per slot one running and one pending job: a newer query cancels the first and replaces the second.

    Pending jobs go by the rank of their queries, equal ones in the order they came.
    `answer` runs on the lane's thread; `report` is called there with every Outcome but those of cancelled jobs, for
    which nobody waits. A thread is never terminated: closing cancels and waits for the next check of the token.
    """

    def __init__(self, name: str, answer: Answer, report: Callable[[Outcome], None]) -> None:
        self._answer = answer
        self._report = report
        self._pending: dict[str, _Job] = {}
        self._running: _Job | None = None
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=f"{name} lane", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, slot: str, query: AnyQuery) -> None:
        """Ask; whatever the slot asked before is no longer wanted. Any thread."""
        with self._changed:
            self._drop(slot)
            self._pending[slot] = _Job(slot=slot, query=query)
            self._changed.notify()

    def cancel(self, slot: str) -> None:
        """Stop what the slot asked; nothing more is heard of it. Any thread."""
        with self._changed:
            self._drop(slot)

    @property
    def running(self) -> Running | None:
        """What it is doing now. Any thread."""
        job = self._running
        return Running(slot=job.slot, query=job.query, fraction=job.fraction) if job else None

    def close(self, timeout: float) -> bool:
        """Cancel everything and wait for the thread to end; False when it did not within `timeout` seconds."""
        with self._changed:
            self._closing = True
            self._pending.clear()
            if self._running:
                self._running.cancel.cancel()
            self._changed.notify()
        if not self._thread.is_alive():
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _drop(self, slot: str) -> None:
        self._pending.pop(slot, None)
        if self._running and self._running.slot == slot:
            self._running.cancel.cancel()

    def _work(self) -> None:
        while job := self._next():
            outcome = self._run(job)
            with self._changed:
                self._running = None
                is_wanted = not job.cancel.cancelled
            if is_wanted:
                self._report(outcome)

    def _next(self) -> _Job | None:
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._closing)
            if self._closing:
                return None
            slot = min(self._pending, key=lambda slot: self._pending[slot].query.rank)
            self._running = self._pending.pop(slot)
            return self._running

    def _run(self, job: _Job) -> Outcome:
        failed = job.query.failure
        try:
            job.cancel.check()
            result = self._answer(job.query, job.cancel, job.note_progress)
        except CoreError as error:
            details, remedy = traceback.format_exc(), job.query.remedy_for(error)
            result = Problem(what=failed, message=str(error), details=details, remedy=remedy)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            result = Problem(what=failed, message=text, details=traceback.format_exc(), is_bug=True)
        return Outcome(slot=job.slot, query=job.query, result=result)
