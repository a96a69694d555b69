"""A controller with a fake lane that answers when told to, and presenters that remember."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from PySide6.QtCore import QCoreApplication
from pytestqt.qtbot import QtBot

from explorer.controller import Controller
from explorer.state.outcome import Outcome, Problem
from explorer.state.queries import AnyQuery, LaneName
from explorer.state.store import Store
from explorer.workers.bridge import Bridge
from explorer.workers.lane import Lane, Running
from tests.explorer.states import opened, tokens, trace_facts


@dataclass
class FakeLane:
    """Holds what was asked until the test answers it."""

    bridge: Bridge
    asked: dict[str, AnyQuery] = field(default_factory=dict)
    n_asked: int = 0
    cancelled: list[str] = field(default_factory=list)
    running: Running | None = None
    is_closed: bool = False

    def start(self) -> None:
        pass

    def submit(self, slot: str, query: AnyQuery) -> None:
        self.asked[slot] = query
        self.n_asked += 1

    def cancel(self, slot: str) -> None:
        self.asked.pop(slot, None)
        self.cancelled.append(slot)

    def close(self, timeout: float) -> bool:
        self.is_closed = True
        return True

    def answer(self, slot: str, result: object) -> None:
        self.bridge.deliver(Outcome(slot=slot, query=self.asked.pop(slot), result=result))


def both_lanes(lane: FakeLane) -> dict[LaneName, Lane]:
    return {"interactive": cast(Lane, lane), "io": cast(Lane, lane)}


@dataclass
class Memory:
    """A presenter that remembers the news."""

    news: list[object] = field(default_factory=list)

    def show_nothing(self) -> None:
        self._note("nothing")

    def show_waiting(self, *, is_own: bool) -> None:
        self._note("waiting")

    def show_progress(self, fraction: float | None) -> None:
        self._note(fraction)

    def show_result(self, result: object) -> None:
        self._note(result)

    def show_problem(self, problem: Problem) -> None:
        self._note(problem)

    def show_blocked(self, problem: Problem) -> None:
        self._note(problem)

    def _note(self, news: object) -> None:
        if not self.news or self.news[-1] != news:
            self.news.append(news)

    @property
    def last(self) -> object:
        return self.news[-1] if self.news else None


@dataclass
class Bench:
    store: Store
    lane: FakeLane
    controller: Controller
    matrix: Memory
    qtbot: QtBot

    def answer(self, slot: str, result: object) -> None:
        self.lane.answer(slot, result)
        QCoreApplication.processEvents()  # the bridge's signal is queued

    def know_everything(self) -> None:
        """Answer the facts, up to the question for the matrix."""
        self.answer("open", opened())
        self.answer("tokens", tokens())
        self.answer("trace", trace_facts())
