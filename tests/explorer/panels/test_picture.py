from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from explorer.panels.picture import PicturePanel
from explorer.state.app_state import AppState, Cell
from explorer.theme.manager import ThemeManager
from tests.explorer.plots.pictures import FIRST, patch_picture
from tests.explorer.states import encoding, tokens, traced_state


@pytest.fixture
def panel(qtbot: QtBot, themes: ThemeManager) -> Any:
    panel: Any = PicturePanel(themes)
    for widget in (panel, *panel.controls()):
        qtbot.addWidget(widget)
    panel.draw(patch_picture(query=2, note="patches 0.5000, class 0.5000"))
    return panel


def state_at(key: int) -> AppState:
    """The mouse is over a key of the row on screen."""
    found = replace(tokens(), stacks={"decoder": encoding(*"abcdefg")})
    return traced_state(tokens=found, hover=Cell(query=2, key=key))


def moved(qtbot: QtBot, panel: Any, index: int) -> Cell | None:
    """The cell that is locked after a click on the patch of a token."""
    with qtbot.waitSignal(panel.intended) as intended:
        panel._map.patch_clicked.emit(index)
    assert intended.args is not None
    return intended.args[0](AppState()).selection.cell


def test_a_patch_under_the_mouse_is_a_key_of_the_row_on_screen(qtbot: QtBot, panel: Any) -> None:
    with qtbot.waitSignal(panel.noticed) as noticed:
        panel._map.patch_hovered.emit(4)
    assert noticed.args is not None and noticed.args[0](AppState()).hover == Cell(query=2, key=4)


def test_a_patch_that_is_clicked_becomes_the_query(qtbot: QtBot, panel: Any) -> None:
    assert moved(qtbot, panel, 4) == Cell(query=4, key=4)
    panel.draw(patch_picture(query=0, asks=False))
    assert moved(qtbot, panel, 4) == Cell(query=0, key=4)


def test_the_weight_of_the_key_stands_in_the_place_of_those_of_all(panel: Any) -> None:
    assert panel._note.text() == "patches 0.5000, class 0.5000"
    panel.show_state(state_at(FIRST + 2))
    assert panel._note.text() == "patch 0,2: 0.5000"
    panel.show_state(state_at(0))  # the class token
    assert panel._note.text() == "patches 0.5000, class 0.5000"
