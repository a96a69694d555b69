"""The matrix on screen is the matrix, row 0 at the top; marks, keys, mouse and zoom."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from explorer.plots.colorbar import ColorBar
from explorer.plots.heatmap import HeatmapPlot
from explorer.plots.matrix import Layer, MatrixCanvas
from explorer.plots.zoom import Frame
from explorer.theme.colors import LIGHT
from explorer.theme.manager import ThemeChoice
from explorer.viewmodels.colormaps import lookup_table
from tests.explorer.plots.pictures import color_of, heatmap, pixel

OVERVIEW = {"shape": (4, 4), "rows": (0, 4), "cols": (0, 4), "cells": (2, 2), "levels": (0.0, 4.0)}
TWO_BY_THREE = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.fixture
def plot(qtbot, themes):
    plot = HeatmapPlot(themes)
    qtbot.addWidget(plot)
    plot.resize(640, 520)
    with qtbot.waitExposed(plot):
        plot.show()
    return plot


def middle(plot: HeatmapPlot, row: int, col: int) -> QPoint:
    """The middle of a cell on the canvas."""
    return plot._canvas.frame.pixels((row, row + 1), (col, col + 1)).center().toPoint()


def scroll(plot: HeatmapPlot, point: QPoint, notches: int) -> None:
    position = QPointF(point)
    event = QWheelEvent(
        position,
        plot._canvas.mapToGlobal(position),
        QPoint(),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(plot._canvas, event)


def test_row_0_column_2_of_123_456_is_3_on_screen(plot):
    """pyqtgraph#315: column-major images show the transpose."""
    picture = heatmap(TWO_BY_THREE)
    plot.set_picture(picture)
    for (row, col), value in np.ndenumerate(TWO_BY_THREE):
        assert pixel(plot._canvas, middle(plot, row, col)) == color_of(value, picture)


def test_mouse_over_row_0_column_2_says_so(qtbot, plot):
    plot.set_picture(heatmap(TWO_BY_THREE))
    with qtbot.waitSignal(plot.cell_hovered) as hovered:
        qtbot.mouseMove(plot._canvas, middle(plot, 0, 2))
    assert hovered.args == [0, 2]


def test_a_cell_is_hovered_once_however_the_mouse_moves_in_it(qtbot, plot):
    plot.set_picture(heatmap(TWO_BY_THREE))
    cells = []
    plot.cell_hovered.connect(lambda row, col: cells.append((row, col)))
    for shift in range(4):
        qtbot.mouseMove(plot._canvas, middle(plot, 1, 1) + QPoint(shift, 0))
    assert cells == [(1, 1)]


def test_a_click_gives_the_cell_and_a_drag_does_not(qtbot, plot):
    plot.set_picture(heatmap(TWO_BY_THREE))
    with qtbot.waitSignal(plot.cell_clicked) as clicked:
        qtbot.mouseClick(plot._canvas, Qt.MouseButton.LeftButton, pos=middle(plot, 1, 0))
    assert clicked.args == [1, 0]
    with qtbot.assertNotEmitted(plot.cell_clicked):
        qtbot.mousePress(plot._canvas, Qt.MouseButton.LeftButton, pos=middle(plot, 1, 0))
        qtbot.mouseMove(plot._canvas, middle(plot, 0, 2))
        qtbot.mouseRelease(plot._canvas, Qt.MouseButton.LeftButton, pos=middle(plot, 0, 2))


def test_masked_zero_and_uncomputed_cells_look_different(plot):
    values = np.array([[0.0, 0.0, 0.0, 1.0]])
    picture = heatmap(
        values, masked=np.array([[False, True, False, False]]), missing=np.array([[False, False, True, False]])
    )
    plot.set_picture(picture)
    image = plot._canvas.grab().toImage()

    def colors(col: int) -> set[str]:
        place = plot._canvas.frame.pixels((0, 1), (col, col + 1)).toRect().adjusted(4, 4, -4, -4)
        return {
            image.pixelColor(x, place.center().y() + dy).name()
            for x in range(place.left(), place.right())
            for dy in range(12)
        }

    zero, masked, missing = colors(0), colors(1), colors(2)
    assert zero == {color_of(0.0, picture).name()}
    assert LIGHT.surface in masked and len(masked) > 1
    assert LIGHT.surface in missing and len(missing) > 1
    assert masked.isdisjoint(zero) and missing.isdisjoint(zero)
    assert masked - {LIGHT.surface} != missing - {LIGHT.surface}


def test_a_pooled_picture_covers_the_tokens_it_stands_for(qtbot, plot):
    pooled = heatmap(TWO_BY_THREE, shape=(200, 300), rows=(0, 200), cols=(0, 300), cells=(100, 100))
    plot.set_picture(pooled)
    with qtbot.waitSignal(plot.cell_hovered) as hovered:
        qtbot.mouseMove(plot._canvas, middle(plot, 150, 250))
    assert hovered.args == [150, 250]
    assert pixel(plot._canvas, middle(plot, 150, 250)) == color_of(6.0, pooled)
    assert pooled.index_of(150, 250) == (1, 2)


def test_what_is_seen_under_the_mouse_is_the_value_that_is_read_there(plot):
    """Nine cells of which four share a value: the last value has one left, and is as long as that."""
    shape = {"shape": (9, 9), "rows": (0, 9), "cols": (0, 9), "cells": (4, 4)}
    pooled = heatmap(np.arange(9.0).reshape(3, 3), **shape)
    plot.set_picture(pooled)
    for row, col in np.ndindex(9, 9):
        place = row // 4, col // 4
        assert pooled.index_of(row, col) == place
        assert pixel(plot._canvas, middle(plot, row, col)) == color_of(3.0 * place[0] + place[1], pooled)


@pytest.mark.parametrize("n", [601, 701, 1001])
@pytest.mark.parametrize("height", [300, 392, 461])
def test_the_last_row_is_seen_however_little_of_a_pixel_is_left_for_it(qtbot, n: int, height: int):
    picture = heatmap(np.eye(n)[[0] * (n - 1) + [n - 1]])  # the last cell, and the first ones of other rows
    canvas = MatrixCanvas(LIGHT)
    qtbot.addWidget(canvas)
    canvas.resize(height, height)
    canvas.set_frame(Frame.whole((n, n)))
    canvas.set_layers([Layer(picture, LIGHT)])
    image = canvas.grab().toImage()
    corner = round(image.width() / canvas.devicePixelRatioF()) - 1
    assert image.pixelColor(corner, corner) == color_of(1.0, picture)
    assert image.pixelColor(corner, 0) == color_of(0.0, picture)


def test_masked_values_at_the_end_are_hatched_as_far_as_they_reach(plot):
    shape = {"shape": (9, 9), "rows": (0, 9), "cols": (0, 9), "cells": (9, 4)}
    picture = heatmap(np.array([[1.0, 1.0, 0.0]]), masked=np.array([[False, False, True]]), **shape)
    plot.set_picture(picture)
    image = plot._canvas.grab().toImage()
    middle_row = image.height() // 2
    shown = [image.pixelColor(x, middle_row) == color_of(1.0, picture) for x in range(image.width())]
    assert sum(shown) == pytest.approx(image.width() * 8 / 9, abs=1.0)
    assert not any(shown[-(image.width() // 9) + 1 :])


def test_a_part_with_a_short_last_value_leaves_the_overview_beside_it(plot):
    overview = heatmap(np.full((9, 9), 1.0), levels=(0.0, 4.0), identity="head")
    part = {"shape": (9, 9), "rows": (0, 5), "cols": (0, 5), "cells": (4, 4)}
    plot.set_picture(overview)
    plot.set_picture(heatmap(np.full((2, 2), 3.0), levels=(0.0, 4.0), identity="head", **part))
    assert pixel(plot._canvas, middle(plot, 4, 4)) == color_of(3.0, overview)
    assert pixel(plot._canvas, middle(plot, 5, 5)) == color_of(1.0, overview)


def test_an_exact_part_lies_over_the_overview_of_the_same_matrix(plot):
    overview = heatmap(np.full((2, 2), 1.0), **OVERVIEW, identity="head")
    part = heatmap(np.full((2, 2), 3.0), shape=(4, 4), rows=(0, 2), cols=(0, 2), levels=(0.0, 4.0), identity="head")
    plot.set_picture(overview)
    plot.set_picture(part)
    assert pixel(plot._canvas, middle(plot, 0, 0)) == color_of(3.0, part)
    assert pixel(plot._canvas, middle(plot, 3, 3)) == color_of(1.0, overview)


def test_a_part_of_another_matrix_does_not_keep_the_old_overview(plot):
    overview = heatmap(np.full((2, 2), 1.0), **OVERVIEW, identity="a")
    part = heatmap(np.full((2, 2), 3.0), shape=(4, 4), rows=(0, 2), cols=(0, 2), levels=(0.0, 4.0), identity="b")
    plot.set_picture(overview)
    plot.set_picture(part)
    assert pixel(plot._canvas, middle(plot, 3, 3)).name() == LIGHT.surface


def test_the_wheel_zooms_about_the_pointer_and_announces_the_part_once(qtbot, plot):
    plot.set_picture(heatmap(np.eye(100)))
    qtbot.waitUntil(lambda: not plot._range_timer.isActive())
    point = middle(plot, 20, 70)
    before = plot._canvas.frame.at(QPointF(point))
    announced = []
    plot.view_range_changed.connect(lambda rows, cols, size: announced.append((rows, cols, size)))
    for _ in range(3):
        scroll(plot, point, 1)
    assert plot._canvas.frame.at(QPointF(point)) == pytest.approx(before)
    qtbot.waitUntil(lambda: bool(announced))
    assert len(announced) == 1
    rows, cols, size = announced[0]
    assert (rows, cols) == plot._canvas.frame.whole_cells()
    assert 50 < rows[1] - rows[0] < 62  # 100 / 1.2**3, widened to whole cells
    scale = plot._canvas.height() / (plot.view_range[0][1] - plot.view_range[0][0])
    assert size[0] == pytest.approx((rows[1] - rows[0]) * scale * plot.devicePixelRatioF(), abs=1)


def test_the_zoom_stays_for_another_head_and_goes_for_another_text(plot):
    plot.set_picture(heatmap(np.eye(40)))
    plot.zoom_in()
    zoomed = plot.view_range
    assert zoomed != ((0.0, 40.0), (0.0, 40.0))
    plot.set_picture(heatmap(np.eye(40) * 2))
    assert plot.view_range == zoomed
    plot.set_picture(heatmap(np.eye(41)))
    assert plot.view_range == ((0.0, 41.0), (0.0, 41.0))


def test_zoom_out_and_reset_show_everything(plot):
    plot.set_picture(heatmap(np.eye(40)))
    plot.zoom_in()
    plot.zoom_out()
    assert plot.view_range == ((0.0, 40.0), (0.0, 40.0))
    plot.set_view_range((3.0, 9.0), (30.0, 36.0))
    assert plot.view_range == ((3.0, 9.0), (30.0, 36.0))
    plot.reset_view()
    assert plot.view_range == ((0.0, 40.0), (0.0, 40.0))


def test_cells_stay_square_in_a_wide_window(plot):
    plot.resize(1000, 400)
    plot.set_picture(heatmap(np.eye(8)))
    assert plot._canvas.width() == plot._canvas.height()


def test_a_long_cross_attention_fills_its_room(plot):
    plot.set_picture(heatmap(np.ones((4, 100)) * np.arange(100)))
    assert plot._canvas.width() > 300
    assert plot._canvas.height() > 200


def test_arrow_keys_move_the_hovered_cell(qtbot, plot):
    plot.set_picture(heatmap(np.eye(5)))
    plot.set_hovered_cell((2, 2))
    with qtbot.waitSignal(plot.cell_hovered) as hovered:
        qtbot.keyClick(plot, Qt.Key.Key_Down)
    assert hovered.args == [3, 2]


def test_arrow_keys_move_the_locked_cell_and_enter_and_escape_lock_and_free(qtbot, plot):
    plot.set_picture(heatmap(np.eye(5)))
    plot.set_locked_cell((0, 0))
    with qtbot.waitSignal(plot.cell_clicked) as moved:
        qtbot.keyClick(plot, Qt.Key.Key_Right)
    with qtbot.waitSignal(plot.cell_clicked) as entered:
        qtbot.keyClick(plot, Qt.Key.Key_Return)
    with qtbot.waitSignal(plot.lock_released):
        qtbot.keyClick(plot, Qt.Key.Key_Escape)
    assert (moved.args, entered.args) == ([0, 1], [0, 1])


def test_a_cell_moved_out_of_view_is_brought_into_it(plot):
    plot.set_picture(heatmap(np.eye(100)))
    plot.set_view_range((0.0, 10.0), (0.0, 10.0))
    plot.set_locked_cell((9, 9))
    plot.move_cell(1, 1)
    assert plot.view_range == (pytest.approx((1.0, 11.0)), pytest.approx((1.0, 11.0)))


def test_a_locked_cell_has_a_border(plot):
    picture = heatmap(np.zeros((4, 4)), levels=(0.0, 1.0))
    plot.set_picture(picture)
    plot.set_locked_cell((1, 2))
    corner = plot._canvas.frame.pixels((1, 2), (2, 3)).topLeft().toPoint()
    assert pixel(plot._canvas, corner).name() == LIGHT.cursor


def test_a_lock_beyond_the_matrix_is_not_drawn(plot):
    plot.set_picture(heatmap(np.eye(4)))
    plot.set_locked_cell((7, 7))
    assert plot.accessibleDescription() == ""


def test_the_marked_cell_is_told_to_a_screen_reader(plot):
    tokens = ("The", " cat", " sat")
    plot.set_picture(heatmap(np.eye(3), row_labels=tokens, col_labels=tokens))
    plot.set_locked_cell((2, 1))
    assert plot.accessibleName() == "Attention weights, layer 0 head 0"
    assert plot.accessibleDescription() == "query (row) 2 \u00b7sat, key (column) 1 \u00b7cat"


def test_a_stale_picture_is_dimmed_until_the_next_one(qtbot, plot):
    picture = heatmap(TWO_BY_THREE)
    plot.set_picture(picture)
    place = middle(plot, 0, 0)
    plot.set_stale(True)
    qtbot.waitUntil(plot._stale_note.isVisible)
    assert pixel(plot._canvas, place) != color_of(1.0, picture)
    plot.set_picture(picture)
    assert not plot._stale_note.isVisible()
    assert pixel(plot._canvas, place) == color_of(1.0, picture)


def test_an_answer_in_time_does_not_make_the_picture_blink(qtbot, plot):
    plot.set_picture(heatmap(TWO_BY_THREE))
    dimmed = []
    plot._stale_note.dimmed.connect(dimmed.append)
    plot.set_stale(True)
    plot.set_picture(heatmap(TWO_BY_THREE))
    assert True not in dimmed


def test_a_change_of_theme_reaches_paper_and_picture(plot, themes):
    plot.set_picture(heatmap(np.array([[-1.0, 0.0, 1.0]]), levels=(-1.0, 1.0), colormap="diverging"))
    light = pixel(plot._canvas, middle(plot, 0, 1))
    themes.set_choice(ThemeChoice.DARK)
    dark = pixel(plot._canvas, middle(plot, 0, 1))
    assert light.lightness() > 230
    assert dark.lightness() < 25


def test_a_hidden_plot_colours_its_picture_when_shown(plot):
    plot.hide()
    picture = heatmap(TWO_BY_THREE)
    plot.set_picture(picture)
    assert plot._canvas._layers == []
    plot.show()
    assert pixel(plot._canvas, middle(plot, 0, 2)) == color_of(3.0, picture)


def test_nothing_is_drawn_without_a_picture(qtbot, plot):
    plot.set_picture(heatmap(TWO_BY_THREE))
    plot.set_picture(None)
    assert not plot._canvas.isVisible()
    with qtbot.assertNotEmitted(plot.cell_hovered):
        plot.move_cell(1, 0)


def test_tokens_of_a_hundred_thousand_are_not_painted(qtbot, plot):
    """Labels thin out to indices, so an overview of any length paints a handful of texts."""
    n = 100_000
    tokens = tuple("t" for _ in range(n))
    whole = {"rows": (0, n), "cols": (0, n), "cells": (1563, 1563)}
    overview = heatmap(np.eye(64), shape=(n, n), **whole, row_labels=tokens, col_labels=tokens)
    plot.set_picture(overview)
    assert len(plot._row_axis._regular_indices()) < 20
    assert len(plot._col_axis._regular_indices()) < 20


def test_the_plot_shows_that_it_has_the_keyboard(plot):
    plot.set_picture(heatmap(TWO_BY_THREE))
    beside = plot._canvas.mapTo(plot, QPoint(-3, plot._canvas.height() // 2))
    plot.clearFocus()
    assert pixel(plot, beside).name() == LIGHT.surface
    plot.setFocus()
    assert pixel(plot, beside).name() == LIGHT.accent


def test_hairlines_part_exact_cells_and_never_a_pooled_one(plot):
    exact = heatmap(np.ones((4, 4)), levels=(0.0, 1.0))
    pooled = heatmap(np.ones((2, 2)), levels=(0.0, 1.0), shape=(4, 4), rows=(0, 4), cols=(0, 4), cells=(2, 2))
    for picture, border in ((exact, LIGHT.surface), (pooled, color_of(1.0, pooled).name())):
        plot.set_picture(picture)
        corner = plot._canvas.frame.pixels((1, 2), (1, 2)).topLeft()
        assert pixel(plot._canvas, QPoint(round(corner.x()), round(corner.y()) + 20)).name() == border


def test_labels_shrink_before_they_thin_out(plot):
    """A sentence that nearly fits keeps every word."""
    axis = plot._row_axis
    full = axis._metrics.height()
    plot.set_picture(heatmap(np.eye(30), row_labels=("t",) * 30))
    for pitch, step, scale in ((2.0, 1, 1.0), (0.8, 1, 0.8), (0.6, 2, 1.0)):
        axis.resize(axis.width(), round(30 * pitch * full))
        assert axis._regular_indices().step == step
        assert axis._regular_font().pointSizeF() == pytest.approx(scale * axis._font.pointSizeF(), rel=0.05)


def test_the_title_says_exact_cells_only_while_each_cell_has_a_pixel_of_its_own(plot):
    plot.set_picture(heatmap(np.ones((2000, 2000)), note="exact cells; zoom in"))
    assert plot._note.text() == "exact cells, each pixel the strongest it covers; zoom in"
    plot.set_view_range((0.0, 100.0), (0.0, 100.0))
    assert plot._note.text() == "exact cells; zoom in"


def test_the_colour_bar_stays_within_a_low_plot(plot):
    plot.resize(640, 200)
    plot.set_picture(heatmap(TWO_BY_THREE))
    assert plot._bar.geometry().bottom() <= plot._body.height()


@pytest.mark.parametrize("levels", [(-0.0734, 0.0734), (0.0, 1.0), (0.31, 0.35), (-4.0, 0.0)])
@pytest.mark.parametrize("height", [30, 90, 240])
def test_a_colour_bar_has_two_numbers_at_least(themes, qtbot, levels, height):
    bar = ColorBar(themes.theme)
    qtbot.addWidget(bar)
    bar.set_content(lookup_table("viridis"), levels, "weight", (), [])
    ticks = bar._ticks(height)
    assert len(ticks) >= 2 and all(levels[0] - 1e-9 <= value <= levels[1] + 1e-9 for value, _ in ticks)
