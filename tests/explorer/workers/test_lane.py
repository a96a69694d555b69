from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Queue
from typing import ClassVar

import pytest

from core_model.cancel import CancelToken, Progress
from core_model.errors import TraceError
from explorer.state.outcome import Outcome, Problem
from explorer.state.queries import Query
from explorer.workers.lane import Answer, Lane

PATIENCE = 5.0


@dataclass(frozen=True, kw_only=True)
class Ask(Query[str]):
    name: str


@dataclass(frozen=True, kw_only=True)
class AskMuch(Ask):
    rank: ClassVar[int] = 2


class Gate:
    """Answers a query with its name; "held" queries wait until released, checking their token."""

    def __init__(self) -> None:
        self.started: Queue[str] = Queue()
        self.release = threading.Event()
        self.threads: set[int] = set()

    def __call__(self, query: Query[str], cancel: CancelToken, progress: Progress) -> str:
        assert isinstance(query, Ask)
        self.threads.add(threading.get_ident())
        self.started.put(query.name)
        progress(0.5)
        while query.name.startswith("held") and not self.release.wait(0.001):
            cancel.check()
        return query.name


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def outcomes() -> Queue[Outcome]:
    return Queue()


@pytest.fixture
def lane(gate: Gate, outcomes: Queue[Outcome]) -> Iterator[Lane]:
    lane = Lane("test", gate, outcomes.put)
    lane.start()
    yield lane
    gate.release.set()
    assert lane.close(PATIENCE)


def _one_lane(answer: Answer, outcomes: Queue[Outcome]) -> Callable[[], bool]:
    lane = Lane("test", answer, outcomes.put)
    lane.start()
    lane.submit("a", Ask(name="x"))
    return lambda: lane.close(PATIENCE)


def test_every_slot_is_answered_on_one_thread_of_its_own(lane: Lane, gate: Gate, outcomes: Queue[Outcome]) -> None:
    for slot in ("a", "b", "c"):
        lane.submit(slot, Ask(name=slot))
    results = {outcome.slot: outcome.result for outcome in (outcomes.get(timeout=PATIENCE) for _ in range(3))}
    assert results == {"a": "a", "b": "b", "c": "c"}
    assert len(gate.threads) == 1
    assert threading.get_ident() not in gate.threads


def test_a_newer_query_cancels_the_running_one_whose_end_is_not_reported(
    lane: Lane, gate: Gate, outcomes: Queue[Outcome]
) -> None:
    lane.submit("a", Ask(name="held 1"))
    assert gate.started.get(timeout=PATIENCE) == "held 1"
    lane.submit("a", Ask(name="two"))
    assert outcomes.get(timeout=PATIENCE).result == "two"
    assert outcomes.empty()


def test_of_many_pending_queries_only_the_newest_is_answered(lane: Lane, gate: Gate, outcomes: Queue[Outcome]) -> None:
    lane.submit("other", Ask(name="held"))
    assert gate.started.get(timeout=PATIENCE) == "held"
    for number in range(100):
        lane.submit("a", Ask(name=f"number {number}"))
    gate.release.set()
    assert [outcomes.get(timeout=PATIENCE).result for _ in range(2)] == ["held", "number 99"]
    assert gate.started.qsize() == 1


def test_a_query_of_another_slot_does_not_cancel(lane: Lane, gate: Gate, outcomes: Queue[Outcome]) -> None:
    lane.submit("a", Ask(name="held"))
    assert gate.started.get(timeout=PATIENCE) == "held"
    lane.submit("b", Ask(name="b"))
    gate.release.set()
    assert [outcomes.get(timeout=PATIENCE).result for _ in range(2)] == ["held", "b"]


def test_what_is_light_goes_before_what_is_heavy(lane: Lane, gate: Gate, outcomes: Queue[Outcome]) -> None:
    lane.submit("other", Ask(name="held"))
    gate.started.get(timeout=PATIENCE)
    lane.submit("heavy", AskMuch(name="heavy"))
    for name in ("first", "second"):
        lane.submit(name, Ask(name=name))
    gate.release.set()
    results = [outcomes.get(timeout=PATIENCE).result for _ in range(4)]
    assert results == ["held", "first", "second", "heavy"]


def test_of_a_cancelled_query_nothing_is_heard(lane: Lane, gate: Gate, outcomes: Queue[Outcome]) -> None:
    lane.submit("a", Ask(name="held"))
    gate.started.get(timeout=PATIENCE)
    lane.cancel("a")
    lane.submit("b", Ask(name="next"))
    assert outcomes.get(timeout=PATIENCE).result == "next"
    assert outcomes.empty()


def test_what_runs_is_told_with_its_progress(lane: Lane, gate: Gate, outcomes: Queue[Outcome]) -> None:
    lane.submit("a", Ask(name="held"))
    gate.started.get(timeout=PATIENCE)
    running = lane.running
    assert running is not None
    assert (running.slot, running.query) == ("a", Ask(name="held"))
    gate.release.set()
    outcomes.get(timeout=PATIENCE)


def test_closing_cancels_what_runs_and_ends_the_thread(gate: Gate, outcomes: Queue[Outcome]) -> None:
    lane = Lane("test", gate, outcomes.put)
    lane.start()
    lane.submit("a", Ask(name="held"))
    lane.submit("b", Ask(name="never"))
    gate.started.get(timeout=PATIENCE)
    assert lane.close(PATIENCE)
    assert outcomes.empty()


def test_a_lane_that_was_never_started_closes(gate: Gate, outcomes: Queue[Outcome]) -> None:
    assert Lane("test", gate, outcomes.put).close(PATIENCE)


def test_a_users_error_comes_back_as_its_text() -> None:
    outcomes: Queue[Outcome] = Queue()

    def refuse(query: Query[str], cancel: CancelToken, progress: Progress) -> object:
        raise TraceError("too long: 9 tokens, at most 8")

    close = _one_lane(refuse, outcomes)
    result = outcomes.get(timeout=PATIENCE).result
    assert close()
    assert isinstance(result, Problem)
    assert (result.message, result.is_bug) == ("too long: 9 tokens, at most 8", False)


def test_a_bug_comes_back_with_its_traceback_and_the_lane_goes_on() -> None:
    outcomes: Queue[Outcome] = Queue()

    def stumble(query: Query[str], cancel: CancelToken, progress: Progress) -> object:
        if query == Ask(name="x"):
            raise ZeroDivisionError("one by nothing")
        return "fine"

    lane = Lane("test", stumble, outcomes.put)
    lane.start()
    lane.submit("a", Ask(name="x"))
    result = outcomes.get(timeout=PATIENCE).result
    lane.submit("a", Ask(name="y"))
    assert outcomes.get(timeout=PATIENCE).result == "fine"
    assert lane.close(PATIENCE)
    assert isinstance(result, Problem)
    assert result.is_bug
    assert "ZeroDivisionError: one by nothing" in result.message
    assert "in stumble" in result.details
