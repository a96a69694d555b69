from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from explorer.panels.matrix import MatrixPanel
from explorer.state.app_state import Cell
from explorer.state.moves import set_inputs
from explorer.theme.manager import ThemeManager
from explorer.viewmodels.records import HeatmapPicture
from tests.explorer.states import INPUTS, encoding, tokens, traced_state

OLD, NEW = encoding("the", " cat", " sat"), encoding("a", "longer", "text")


def picture(weight: float, size: int = 3) -> HeatmapPicture:
    """Every weight the same."""
    weights = np.full((size, size), weight, np.float32)
    return HeatmapPicture(
        values=weights,
        weights=weights,
        shape=weights.shape,
        rows=(0, size),
        cols=(0, size),
        levels=(0.0, 1.0),
        title="weights",
        scale_name="linear",
        axes=(OLD, OLD),
    )


@pytest.fixture
def panel(qtbot: QtBot, themes: ThemeManager) -> Iterator[Any]:
    """A matrix of 0.25 with the mouse over its last cell."""
    panel: Any = MatrixPanel(themes)
    for widget in (panel, *panel.controls()):
        qtbot.addWidget(widget)
    panel.resize(600, 400)
    with qtbot.waitExposed(panel):
        panel.show()
    panel.show_state(traced_state())
    panel.draw(picture(0.25))
    panel._plot.cell_hovered.emit(2, 2)
    panel.show_state(traced_state(hover=Cell(query=2, key=2)))
    assert said(panel) == "0.2500"
    yield panel


def said(panel: Any) -> str:
    """The weight on the card; empty while there is none."""
    return "" if panel._card.isHidden() else panel._card._weight.text()


def test_under_a_still_mouse_the_card_follows_the_picture(panel):
    panel.draw(picture(0.5))
    assert said(panel) == "0.5000"


def test_an_old_picture_is_not_read_out(panel):
    panel.set_stale(True)
    assert said(panel) == ""
    panel._plot.cell_hovered.emit(1, 1)
    assert said(panel) == ""
    panel.draw(picture(0.5))
    panel.set_stale(False)
    assert said(panel) == "0.5000"


@pytest.mark.parametrize("is_drawn_first", [False, True], ids=["computed", "from the cache"])
def test_the_cells_of_an_older_text_are_not_told_as_cells_of_the_new_one(panel, is_drawn_first):
    """Until the matrix of another text is there, the cells on screen are of other tokens."""
    told: list[Any] = []
    panel.noticed.connect(told.append)
    panel.intended.connect(told.append)
    newer = traced_state(tokens=tokens("a", "longer", "text"))
    drawn = replace(picture(0.5), axes=(NEW, NEW))
    if is_drawn_first:
        panel.draw(drawn)
        panel.show_state(newer)
    else:
        panel.show_state(newer)
        panel.set_stale(True)
        panel._plot.cell_hovered.emit(1, 1)
        panel._plot.cell_clicked.emit(1, 1)
        assert told == []
        panel.draw(drawn)
    panel._plot.cell_hovered.emit(1, 1)
    panel._plot.cell_clicked.emit(1, 1)
    assert len(told) == 2


def test_a_matrix_of_another_size_has_another_cell_under_the_mouse(panel):
    panel.draw(picture(0.5, size=8))
    assert said(panel) == ""


def test_another_text_takes_the_card_away_at_once(panel):
    panel.show_state(set_inputs(replace(INPUTS, text="a dog"))(panel._state))
    assert said(panel) == ""
