"""The controller on a bench of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from explorer.controller import Controller
from explorer.state.app_state import AppState
from explorer.state.queries import matrix_query
from explorer.state.store import Store
from explorer.workers.bridge import Bridge
from tests.explorer.controller.bench import Bench, FakeLane, Memory, both_lanes
from tests.explorer.states import INPUTS, SOURCE


@pytest.fixture
def bench(qtbot: QtBot) -> Iterator[Bench]:
    store, bridge, matrix = Store(AppState(source=SOURCE, inputs=INPUTS)), Bridge(), Memory()
    lane = FakeLane(bridge)
    controller = Controller(store, both_lanes(lane), bridge)
    controller.present("matrix", matrix_query, matrix)
    controller.set_visible("matrix", True)
    yield Bench(store, lane, controller, matrix, qtbot)
    controller.close(1)
