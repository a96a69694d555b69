"""Orders: questions answered once, beside what the state asks."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from PySide6.QtCore import QCoreApplication

from explorer.state.outcome import Outcome, Problem
from explorer.state.queries import OpenQuery
from tests.explorer.controller.bench import Bench, Memory
from tests.explorer.states import SOURCE


@dataclass(frozen=True, kw_only=True)
class Order(OpenQuery):
    """A question of its own kind."""

    number: int = 0


def order(number: int = 0) -> Order:
    return Order(source=SOURCE, number=number)


@pytest.fixture
def recipient(bench: Bench) -> Memory:
    bench.controller.start()
    bench.know_everything()
    bench.answer("matrix", "picture")
    memory = Memory()
    bench.controller.order("export", order(), memory)
    return memory


def test_an_order_is_answered_once_and_the_controller_is_busy_until_then(bench: Bench, recipient: Memory) -> None:
    assert not bench.controller.is_idle
    bench.answer("export", "file")
    assert recipient.news == ["file"]
    assert bench.controller.is_idle
    bench.lane.bridge.deliver(Outcome(slot="export", query=order(), result="again"))
    QCoreApplication.processEvents()
    assert recipient.news == ["file"]


def test_a_newer_order_takes_the_place_of_an_older_one(bench: Bench, recipient: Memory) -> None:
    newer = Memory()
    bench.controller.order("export", order(1), newer)
    bench.lane.bridge.deliver(Outcome(slot="export", query=order(0), result="old"))
    bench.answer("export", "new")
    assert (recipient.news, newer.news) == ([], ["new"])


def test_what_stands_in_the_way_of_an_order_is_told_to_its_recipient(bench: Bench, recipient: Memory) -> None:
    problem = Problem(what="The figure cannot be saved", message="the disk is full")
    bench.answer("export", problem)
    assert recipient.news == [problem]
    assert bench.matrix.last == "picture"


def test_a_fault_of_the_program_becomes_a_notice_too(bench: Bench, recipient: Memory) -> None:
    bench.answer("export", Problem(what="", message="KeyError", details="traceback", is_bug=True))
    assert bench.store.state.notices[-1].details == "traceback"


def test_stopping_ends_an_order_and_says_so(bench: Bench, recipient: Memory) -> None:
    bench.controller.cancel()
    (problem,) = recipient.news
    assert isinstance(problem, Problem) and problem.is_cancelled
    assert "export" in bench.lane.cancelled
    assert bench.controller.is_idle


def test_a_withdrawn_order_is_never_answered(bench: Bench, recipient: Memory) -> None:
    bench.controller.withdraw("export")
    bench.lane.bridge.deliver(Outcome(slot="export", query=order(), result="late"))
    QCoreApplication.processEvents()
    assert recipient.news == []
    assert bench.controller.is_idle
