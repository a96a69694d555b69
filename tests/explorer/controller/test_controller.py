"""The way of the data without a window: a fake lane that answers when told to, and presenters that remember."""

from __future__ import annotations

import threading
from pathlib import Path
from queue import Queue

import pytest
from pytestqt.qtbot import QtBot

from core_model.cancel import CancelToken, Progress
from explorer.controller import Controller
from explorer.state.app_state import ModelInput
from explorer.state.moves import open_source, pick_head, set_display, set_inputs
from explorer.state.outcome import Outcome, Problem
from explorer.state.queries import (
    AnyQuery,
    MatrixQuery,
    OpenQuery,
    TokensQuery,
    TraceQuery,
    heads_query,
    matrix_query,
    training_options_query,
)
from explorer.state.store import Store
from explorer.workers.bridge import Bridge
from explorer.workers.lane import Lane, Running
from tests.explorer.controller.bench import Bench, FakeLane, Memory, both_lanes
from tests.explorer.states import INPUTS, SOURCE, model_info, opened, tokens, trace_facts, traced_state


def test_nothing_is_asked_before_the_start(bench: Bench) -> None:
    assert bench.lane.asked == {}
    assert not bench.controller.is_idle


def test_facts_are_learnt_in_order_and_then_the_panel_is_answered(bench: Bench) -> None:
    bench.controller.start()
    assert bench.lane.asked == {"open": OpenQuery(source=SOURCE)}
    bench.answer("open", opened())
    assert bench.lane.asked == {"tokens": TokensQuery(source=SOURCE, inputs=INPUTS)}
    bench.answer("tokens", tokens())
    assert bench.lane.asked == {"trace": TraceQuery(source=SOURCE, inputs=INPUTS)}
    bench.answer("trace", trace_facts())
    assert list(bench.lane.asked) == ["matrix"]
    assert bench.matrix.news == ["waiting"]
    bench.answer("matrix", "picture")
    assert bench.matrix.last == "picture"
    assert bench.controller.is_idle


def test_an_answer_that_is_no_longer_wanted_is_dropped(bench: Bench) -> None:
    bench.controller.start()
    bench.know_everything()
    late = Outcome(slot="matrix", query=bench.lane.asked["matrix"], result="late")
    bench.store.apply(pick_head(1, 2))
    bench.lane.bridge.deliver(late)
    bench.answer("matrix", "new")
    assert "late" not in bench.matrix.news
    assert bench.matrix.last == "new"


def test_a_head_seen_before_is_drawn_at_once(bench: Bench) -> None:
    bench.controller.start()
    bench.know_everything()
    bench.answer("matrix", "first")
    bench.store.apply(pick_head(1, 2))
    bench.answer("matrix", "second")
    n_asked = bench.lane.n_asked
    bench.store.undo()
    assert bench.matrix.last == "first"
    assert bench.lane.n_asked == n_asked


def test_a_model_seen_before_is_known_at_once_with_all_that_followed(bench: Bench) -> None:
    bench.controller.start()
    bench.know_everything()
    bench.answer("matrix", "first")
    bench.store.apply(open_source(Path("/models/other")))
    assert bench.matrix.last == "waiting"
    n_asked = bench.lane.n_asked
    bench.store.undo()
    assert bench.matrix.last == "first"
    assert bench.lane.n_asked == n_asked


def test_an_undo_that_goes_back_before_a_fact_learns_it_again(bench: Bench) -> None:
    bench.controller.start()
    bench.store.apply(set_display(scale="log"))
    bench.know_everything()
    bench.answer("matrix", "picture")
    bench.store.undo()
    assert bench.store.state.is_traced
    assert bench.matrix.last == "picture"


def test_a_panel_that_leaves_the_screen_stops_asking_and_asks_when_it_returns(bench: Bench) -> None:
    bench.controller.start()
    bench.know_everything()
    bench.controller.set_visible("matrix", False)
    assert bench.lane.cancelled == ["matrix"]
    bench.controller.set_visible("matrix", True)
    assert isinstance(bench.lane.asked["matrix"], MatrixQuery)


def test_why_a_checkpoint_cannot_be_opened_is_shown_where_the_matrix_would_be(bench: Bench) -> None:
    bench.controller.start()
    problem = Problem(what="The checkpoint cannot be opened", message="no such file")
    bench.answer("open", problem)
    assert bench.matrix.last == problem
    assert bench.controller.is_idle
    assert bench.store.state.notices == ()


@pytest.mark.parametrize(("is_on_screen", "n_told"), [(True, 0), (False, 1)])
def test_what_cannot_be_opened_is_told_by_a_message_where_no_panel_says_it(
    bench: Bench, is_on_screen: bool, n_told: int
) -> None:
    bench.controller.start()
    bench.controller.set_visible("matrix", is_on_screen)
    bench.answer("open", Problem(what="The checkpoint cannot be opened", message="the file is empty"))
    told = [notice.text for notice in bench.store.state.notices]
    assert told == ["The checkpoint cannot be opened: the file is empty"] * n_told


def test_a_model_that_cannot_run_says_so_and_reads_no_text(bench: Bench) -> None:
    bench.controller.start()
    bench.answer("open", opened(info=model_info(refusal="fnet has no attention"), reads=()))
    assert isinstance(bench.matrix.last, Problem)
    assert bench.matrix.last.message == "fnet has no attention"
    assert bench.lane.asked == {}


def test_a_bug_is_shown_and_told_with_its_traceback(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.controller.start()
    bench.know_everything()
    problem = Problem(
        what="This picture cannot be computed", message="KeyError: 3", details="Traceback ...", is_bug=True
    )
    bench.answer("matrix", problem)
    assert bench.matrix.last == problem
    assert bench.store.state.notices[-1].details == "Traceback ..."
    assert "Traceback ..." in caplog.text


def test_stopping_cancels_and_going_on_asks_again(bench: Bench) -> None:
    bench.controller.start()
    bench.answer("open", opened())
    bench.controller.cancel()
    assert isinstance(bench.matrix.last, Problem)
    assert bench.matrix.last.is_cancelled
    assert bench.controller.is_idle
    bench.controller.retry()
    assert bench.lane.asked == {"tokens": TokensQuery(source=SOURCE, inputs=INPUTS)}
    assert bench.matrix.last == "waiting"


def test_an_empty_text_leaves_nothing_to_ask(bench: Bench) -> None:
    bench.controller.start()
    bench.know_everything()
    bench.answer("matrix", "picture")
    bench.store.apply(set_inputs(ModelInput()))
    assert bench.matrix.last == "nothing"


def test_progress_of_what_runs_reaches_those_who_wait(bench: Bench) -> None:
    bench.controller.start()
    bench.answer("open", opened())
    bench.answer("tokens", tokens())
    bench.lane.running = Running(slot="trace", query=bench.lane.asked["trace"], fraction=0.43)
    bench.qtbot.waitUntil(lambda: bench.matrix.last == 0.43)


def test_each_end_of_waiting_is_told_once(bench: Bench) -> None:
    told: list[bool] = []
    bench.controller.idle_changed.connect(told.append)
    bench.controller.start()
    bench.know_everything()
    bench.answer("matrix", "picture")
    assert told[-1] is True
    assert told.count(True) == 1


def test_after_closing_no_answer_is_shown(bench: Bench) -> None:
    bench.controller.start()
    bench.know_everything()
    bench.controller.close(1)
    assert bench.lane.is_closed
    bench.answer("matrix", "picture")
    assert bench.matrix.last == "waiting"


def test_a_second_panel_waits_for_the_same_facts(bench: Bench) -> None:
    heads = Memory()
    bench.controller.present("heads", heads_query, heads)
    bench.controller.set_visible("heads", True)
    bench.controller.start()
    bench.know_everything()
    assert set(bench.lane.asked) == {"matrix", "heads"}
    bench.answer("heads", "mosaic")
    assert heads.last == "mosaic"
    assert bench.matrix.last == "waiting"


def test_a_state_that_is_known_already_asks_for_its_pictures_only_after_its_facts(qtbot: QtBot) -> None:
    store, bridge, matrix = Store(traced_state()), Bridge(), Memory()
    lane = FakeLane(bridge)
    controller = Controller(store, both_lanes(lane), bridge)
    controller.present("matrix", matrix_query, matrix)
    controller.set_visible("matrix", True)
    controller.start()
    assert set(lane.asked) == {"open", "tokens", "trace", "matrix"}
    controller.close(1)


def test_a_panel_that_returns_is_not_told_that_what_it_asked_before_was_stopped(qtbot: QtBot) -> None:
    """A real lane: what was stopped ends while the window is busy, and the same is asked again before it looks."""
    started, go_on = Queue[AnyQuery](), threading.Event()

    def answer(query: AnyQuery, cancel: CancelToken, progress: Progress) -> str:
        started.put(query)
        go_on.wait(5)
        cancel.check()
        return "the answer"

    bridge, panel = Bridge(), Memory()
    lane = Lane("test", answer, bridge.deliver)
    controller = Controller(Store(), {"io": lane}, bridge)
    controller.present("options", training_options_query, panel)
    controller.set_visible("options", True)
    controller.start()
    asked = started.get(timeout=5)
    controller.set_visible("options", False)
    lane.submit("another", asked)
    go_on.set()
    started.get(timeout=5)  # the first has ended when the next begins
    controller.set_visible("options", True)
    qtbot.waitUntil(lambda: controller.is_idle)
    assert panel.news == ["waiting", "the answer"]
    assert controller.close(5)
