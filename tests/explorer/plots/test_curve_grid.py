"""Where the plots of a grid stand, by the room there is."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from pytestqt.qtbot import QtBot

from explorer.plots.curve_grid import CurveGrid
from explorer.plots.curves import CurvePlot
from explorer.theme.manager import ThemeManager


@pytest.mark.parametrize(
    ("width", "n_shown", "columns"),
    [
        (600, 5, [0, 0, 1, 0, 1]),
        (600, 4, [0, 1, 0, 1]),
        (240, 5, [0, 0, 0, 0, 0]),
    ],
)
def test_plots_stand_side_by_side_where_each_has_room(
    qtbot: QtBot, themes: ThemeManager, width: int, n_shown: int, columns: list[int]
) -> None:
    plots = [CurvePlot(themes) for _ in range(5)]
    for plot in plots[n_shown:]:
        plot.hide()
    grid = CurveGrid(plots)
    qtbot.addWidget(grid)
    grid.resize(width, 300)
    with qtbot.waitExposed(grid):
        grid.show()
    page = grid.widget()
    assert page is not None
    shown = plots[:n_shown]
    assert [int(plot.mapTo(page, QPoint()).x() > 0) for plot in shown] == columns
    assert (
        min(plot.width() for plot in shown) > 150 and min(plot.height() for plot in shown) > 130
    )  # higher than the grid: it scrolls
    assert (shown[0].width() > width / 2) == (n_shown % 2 == 1)
