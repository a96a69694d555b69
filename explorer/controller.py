"""Keeps what is on screen equal to what is wanted: asks the lanes, hands answers to their presenters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from explorer.state.app_state import AppState, Notice
from explorer.state.moves import Move, add_notice, with_model, with_tokens, with_trace, without_tokens
from explorer.state.outcome import Outcome, Problem
from explorer.state.queries import FACTS, AnyQuery, LaneName, QueryFunction, wanted
from explorer.state.store import Store
from explorer.viewmodels.guidance import obstacle
from explorer.workers.bridge import Bridge
from explorer.workers.lane import Lane
from explorer.workers.lru import Lru
from explorer.workers.weight import weight_of

_ANSWER_BUDGET = 256 << 20
_PROGRESS_MS = 33
_LOG = logging.getLogger(__name__)
_LEARN: dict[str, Callable[[Any], Move]] = {"open": with_model, "tokens": with_tokens, "trace": with_trace}
_KNOWN: dict[str, Callable[[AppState], bool]] = {
    "open": lambda state: state.current_model is not None,
    "tokens": lambda state: state.current_tokens is not None,
    "trace": lambda state: state.is_traced,
}


class Presenter(Protocol):
    """Where a panel's answer is shown. Any method may be called again with the same news."""

    def show_nothing(self) -> None:
        """There is nothing to ask: say what to do."""

    def show_waiting(self, *, is_own: bool) -> None:
        """An answer is on its way, or (not `is_own`) what it stands on is; what is on screen is old."""

    def show_progress(self, fraction: float | None) -> None:
        """How far the work is that this waits for."""

    def show_result(self, result: Any) -> None:
        """The answer."""

    def show_problem(self, problem: Problem) -> None:
        """Why there is no answer."""

    def show_blocked(self, problem: Problem) -> None:
        """Why nothing can be asked: the model or the text that all panels stand on."""


class Recipient(Protocol):
    """Who gave an order and waits for what comes of it."""

    def show_progress(self, fraction: float | None) -> None:
        """How far the work is."""

    def show_result(self, result: Any) -> None:
        """The answer; the last call."""

    def show_problem(self, problem: Problem) -> None:
        """Why there is no answer; the last call."""


@dataclass(kw_only=True)
class _Slot:
    """What a slot asks now and what came of it; `result` is None while the answer is awaited."""

    query: AnyQuery | None = None
    result: object = None

    @property
    def is_waiting(self) -> bool:
        return self.query is not None and self.result is None

    @property
    def is_answered(self) -> bool:
        return self.result is not None and self.problem is None

    @property
    def problem(self) -> Problem | None:
        return self.result if isinstance(self.result, Problem) else None


@dataclass(kw_only=True)
class _Panel:
    ask: QueryFunction
    presenter: Presenter
    is_visible: bool = False


class Controller(QObject):
    """One hop down (state to queries), one hop up (outcomes to presenters). UI thread."""

    idle_changed = Signal(bool)
    progressed = Signal(object)
    """The Running of the lane that works, None when none does; at most every 33 ms."""

    def __init__(
        self, store: Store, lanes: Mapping[LaneName, Lane], bridge: Bridge, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._lanes = lanes
        self._panels: dict[str, _Panel] = {}
        self._slots: dict[str, _Slot] = {slot: _Slot() for slot in FACTS}
        self._orders: dict[str, tuple[AnyQuery, Recipient]] = {}
        self._answers: Lru[AnyQuery, object] = Lru(_ANSWER_BUDGET)
        self._is_running = False
        self._is_busy = False
        self._timer = QTimer(self, interval=_PROGRESS_MS)
        self._timer.timeout.connect(self._on_timer_timeout)
        bridge.arrived.connect(self._on_bridge_arrived, Qt.ConnectionType.QueuedConnection)
        store.watch(self._on_store_changed)

    @property
    def is_idle(self) -> bool:
        """Whether the lanes run and every question that is asked has been answered."""
        return self._is_running and not self._orders and not any(slot.is_waiting for slot in self._slots.values())

    @property
    def problem(self) -> Problem | None:
        """What stands in the way of an answer; the first where there are several."""
        return next((slot.problem for slot in self._slots.values() if slot.problem), None)

    def present(self, slot: str, ask: QueryFunction, presenter: Presenter) -> None:
        """Answer `ask` into `presenter` whenever it is visible. A hidden panel asks nothing."""
        self._panels[slot] = _Panel(ask=ask, presenter=presenter)
        self._slots[slot] = _Slot()

    def set_visible(self, slot: str, is_visible: bool) -> None:
        """The panel of that slot came on screen or left it."""
        if self._panels[slot].is_visible != is_visible:
            self._panels[slot].is_visible = is_visible
            self._ask_all()

    def order(self, slot: str, query: AnyQuery, recipient: Recipient) -> None:
        """Have a question answered once, whatever the state becomes. A newer order in the slot takes its place."""
        self._orders[slot] = query, recipient
        self._lanes[query.lane].submit(slot, query)
        self._tell_all()

    def withdraw(self, slot: str) -> None:
        """The order in that slot is no longer wanted; its recipient hears nothing more."""
        if order := self._orders.pop(slot, None):
            self._lanes[order[0].lane].cancel(slot)
            self._tell_all()

    def start(self) -> None:
        """Start the lanes and ask what the state wants by now."""
        for lane in self._lanes.values():
            lane.start()
        self._is_running = True
        self._ask_all()

    def cancel(self) -> None:
        """Stop what is awaited; the panels say so and offer to go on."""
        for name, slot in self._slots.items():
            if slot.query is not None and slot.is_waiting:
                self._lanes[slot.query.lane].cancel(name)
                slot.result = _stopped()
        for name, (_, recipient) in list(self._orders.items()):
            self.withdraw(name)
            recipient.show_problem(_stopped())
        self._tell_all()

    def retry(self) -> None:
        """Ask again what failed or was stopped."""
        for slot in self._slots.values():
            if slot.problem:
                slot.query = slot.result = None
        self._ask_all()

    def close(self, timeout: float) -> bool:
        """Stop asking, cancel and wait; False when a lane was still busy after `timeout` seconds."""
        self._is_running = False
        self._timer.stop()
        return all([lane.close(timeout) for lane in self._lanes.values()])

    @Slot(object, object)
    def _on_store_changed(self, new: AppState, old: AppState) -> None:
        self._ask_all()

    def _ask_all(self) -> None:
        """Bring every slot's question up to the state, by difference."""
        if not self._is_running:
            return
        visible = {name: panel.ask for name, panel in self._panels.items() if panel.is_visible}
        queries = wanted(self._store.state, visible)
        learned: list[Move] = []
        for name, slot in self._slots.items():
            query = queries.get(name)
            if query != slot.query:
                self._ask(name, slot, query)
            if name in FACTS and slot.is_answered and not _KNOWN[name](self._store.state):
                learned.append(_LEARN[name](slot.result))  # it came from the cache, or an undo went back before it
        for move in learned:
            self._store.settle(move)
        self._tell_all()

    def _ask(self, name: str, slot: _Slot, query: AnyQuery | None) -> None:
        if slot.is_waiting and slot.query is not None:
            self._lanes[slot.query.lane].cancel(name)
        slot.query = query
        slot.result = self._answers.get(query) if query else None
        if query and slot.result is None:
            self._lanes[query.lane].submit(name, query)

    @Slot(object)
    def _on_bridge_arrived(self, outcome: Outcome) -> None:
        if outcome.slot in self._slots:
            self._settle_slot(outcome)
        elif self._is_running:
            self._settle_order(outcome)

    def _settle_slot(self, outcome: Outcome) -> None:
        slot = self._slots[outcome.slot]
        if not self._is_running or not slot.is_waiting or outcome.query != slot.query:
            return
        slot.result = outcome.result
        if problem := slot.problem:
            self._report_bug(problem, outcome)
            if outcome.slot == "open":
                self._report_unseen(problem)
            if outcome.slot == "tokens":
                self._store.settle(without_tokens)
        else:
            self._answers.put(outcome.query, outcome.result, weight_of(outcome.result))
            if outcome.slot in FACTS:
                self._store.settle(_LEARN[outcome.slot](outcome.result))
        self._tell_all()

    def _settle_order(self, outcome: Outcome) -> None:
        query, recipient = self._orders.get(outcome.slot, (None, None))
        if recipient is None or outcome.query != query:
            return
        del self._orders[outcome.slot]
        if isinstance(outcome.result, Problem):
            self._report_bug(outcome.result, outcome)
            recipient.show_problem(outcome.result)
        else:
            recipient.show_result(outcome.result)
        self._tell_all()

    def _report_bug(self, problem: Problem, outcome: Outcome) -> None:
        if problem.is_bug:
            _LOG.error("%s while answering %s\n%s", problem.message, outcome.query, problem.details)
            self._store.settle(add_notice(Notice(severity="error", text=problem.message, details=problem.details)))

    def _report_unseen(self, problem: Problem) -> None:
        """A checkpoint that cannot be opened is told where the picture would be; by a message where none would be."""
        is_seen = any(panel.is_visible for panel in self._panels.values())
        if not problem.is_bug and not is_seen:
            text = f"{problem.what}: {problem.message}"
            self._store.settle(add_notice(Notice(severity="error", text=text, details=problem.details)))

    def _tell_all(self) -> None:
        facts = [self._slots[name] for name in FACTS]
        blocked = obstacle(self._store.state) or next((slot.problem for slot in facts if slot.problem), None)
        is_awaited = any(slot.is_waiting for slot in facts)
        for name, panel in self._panels.items():
            if panel.is_visible:
                self._tell(self._slots[name], panel.presenter, blocked, is_awaited)
        if self._is_busy == self.is_idle:
            self._is_busy = not self.is_idle
            if self._is_busy:
                self._timer.start()
            else:
                self._timer.stop()
                self.progressed.emit(None)
            self.idle_changed.emit(self.is_idle)

    def _tell(self, slot: _Slot, presenter: Presenter, blocked: Problem | None, is_awaited: bool) -> None:
        if slot.problem:
            presenter.show_problem(slot.problem)
        elif blocked and slot.query is None:
            presenter.show_blocked(blocked)
        elif slot.is_waiting or (slot.query is None and is_awaited):
            presenter.show_waiting(is_own=slot.is_waiting)
        elif slot.query is None:
            presenter.show_nothing()
        else:
            presenter.show_result(slot.result)

    @Slot()
    def _on_timer_timeout(self) -> None:
        running = next((lane.running for lane in self._lanes.values() if lane.running), None)
        self.progressed.emit(running)
        for name, panel in self._panels.items():
            if panel.is_visible and running and (self._slots[name].is_waiting or running.slot in FACTS):
                panel.presenter.show_progress(running.fraction)
        if running and (order := self._orders.get(running.slot)):
            order[1].show_progress(running.fraction)


def _stopped() -> Problem:
    return Problem(what="Stopped", message="", remedy="retry", is_cancelled=True)
