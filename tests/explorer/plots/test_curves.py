"""Curves are kept, gaps are gaps, the legend reads out, and zoom is the user's."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF
from PySide6.QtGui import QFontMetricsF, QImage, QPainter

from explorer.plots.curves import CurvePlot
from explorer.plots.setup import pg
from explorer.theme.colors import DARK, LIGHT
from explorer.theme.fonts import caption_font
from explorer.theme.manager import ThemeChoice
from explorer.viewmodels.records import CurvePicture, Series


def losses(n: int = 100, **changes) -> CurvePicture:
    x = np.arange(1.0, n + 1)
    settings = {
        "series": (Series(name="train", x=x, y=4.0 / x), Series(name="validation", x=x[::10], y=5.0 / x[::10])),
        "title": "Loss, copy task",
        "x_title": "step",
        "y_title": "loss",
        "y_unit": "nat",
    }
    return CurvePicture(**(settings | changes))


@pytest.fixture
def plot(qtbot, themes):
    plot = CurvePlot(themes)
    qtbot.addWidget(plot)
    plot.resize(640, 400)
    with qtbot.waitExposed(plot):
        plot.show()
    return plot


def readings(plot: CurvePlot) -> dict[str, str]:
    return {entry.name: entry.reading for entry in plot._legend._entries}


def hover(qtbot, plot: CurvePlot, x: float) -> None:
    plot.grab()  # lays out the axes
    position = plot._area.mapFromScene(plot._area.box.mapViewToScene(QPointF(x, 1.0)))
    middle = QPoint(position.x(), plot._area.height() // 2)
    qtbot.mouseMove(plot._area.viewport(), middle)


def test_curves_are_kept_while_their_names_stay(plot):
    plot.set_picture(losses(100))
    train = plot._curves["train"]
    plot.set_picture(losses(200))
    assert plot._curves["train"] is train
    assert train.getOriginalDataset()[0][-1] == 200.0


def test_a_curve_that_is_gone_is_removed(plot):
    plot.set_picture(losses())
    plot.set_picture(losses(series=losses().series[:1]))
    assert set(plot._curves) == {"train"}
    assert sum(isinstance(item, pg.PlotDataItem) for item in plot._area.box.addedItems) == 1


def test_the_legend_shows_the_latest_values(plot):
    plot.set_picture(losses(100))
    assert readings(plot) == {"train": "0.04", "validation": f"{5 / 91:.4g}"}


def test_the_legend_reads_out_the_sample_under_the_pointer(qtbot, plot):
    plot.set_picture(losses(100))
    with qtbot.waitSignal(plot.x_hovered) as hovered:
        hover(qtbot, plot, 50.2)
    assert hovered.args == [50.0] or hovered.args == [51.0]
    x = hovered.args[0]
    assert readings(plot)["train"] == f"{4 / x:.4g}"
    assert readings(plot)["validation"] == f"{5 / 51:.4g}"  # the nearest of 1, 11, 21 ...
    assert plot._legend._where == f"step {x:g}"


def test_nan_is_a_gap_and_a_dash(plot):
    y = np.array([1.0, np.nan, 3.0])
    plot.set_picture(losses(series=(Series(name="loss", x=np.arange(3.0), y=y),)))
    plot.grab()
    assert plot._curves["loss"].opts["connect"] == "finite"
    only_nan = Series(name="loss", x=np.arange(3.0), y=np.full(3, np.nan))
    plot.set_picture(losses(series=(only_nan,)))
    plot.grab()
    assert readings(plot) == {"loss": "\u2013"}


def test_x_follows_the_data_until_the_user_zooms_and_again_after_a_reset(plot):
    plot.set_picture(losses(100))
    plot.grab()
    plot.set_picture(losses(200))
    plot.grab()
    assert plot.x_range[1] >= 200.0
    plot.zoom_in()
    zoomed = plot.x_range
    plot.set_picture(losses(400))
    plot.grab()
    assert plot.x_range == pytest.approx(zoomed)
    plot.reset_view()
    plot.grab()
    assert plot.x_range[1] >= 400.0


def test_y_fits_what_is_on_screen(plot):
    plot.set_picture(losses(100))
    plot._area.box.setXRange(50.0, 100.0, padding=0.0)
    plot.grab()
    low, high = plot._area.box.viewRange()[1]
    assert high < 0.2
    assert low < 0.04


def test_a_million_points_are_reduced_to_the_pixels_and_keep_their_peaks(plot):
    x = np.arange(1_000_000.0)
    y = np.zeros_like(x)
    y[543_210] = 7.0
    plot.set_picture(losses(series=(Series(name="loss", x=x, y=y),)))
    plot.grab()
    drawn_x, drawn_y = plot._curves["loss"].getData()
    assert len(drawn_x) < 8 * plot.width()
    assert drawn_y.max() == 7.0


def test_a_log_axis_draws_logarithms_and_writes_values(plot):
    plot.set_picture(
        losses(log_y=True, series=(Series(name="loss", x=np.arange(1.0, 5.0), y=np.array([1e-3, 1e-2, 1, 10])),))
    )
    plot.grab()
    np.testing.assert_allclose(plot._curves["loss"].getData()[1], [-3, -2, 0, 1])
    assert plot._area.axes["left"].tickStrings([-2.0, 0.0, 1.0], 1.0, 1.0) == ["0.01", "1", "10"]
    assert readings(plot) == {"loss": "10"}


def test_the_marker_stands_where_it_is_told(plot):
    plot.set_picture(losses(marker=40.0, marker_label="now"))
    assert plot._marker.isVisible() and plot._marker.value() == 40.0
    plot.set_marker(60.0, "now")
    assert plot._marker.value() == 60.0
    plot.set_marker(None)
    assert not plot._marker.isVisible()


def test_axes_name_what_they_measure_with_the_unit(plot):
    plot.set_picture(losses())
    assert plot._area.axes["left"].labelText == "loss (nat)"
    assert plot._area.axes["bottom"].labelText == "step"
    assert plot.accessibleName() == "Loss, copy task"


def test_curves_take_the_colours_of_the_theme_and_of_their_head(plot, themes):
    head = Series(name="1.2", x=np.arange(3.0), y=np.arange(3.0), head=(1, 2))
    plot.set_picture(losses(series=(*losses().series, head)))
    themes.set_choice(ThemeChoice.DARK)
    assert plot._curves["train"].opts["pen"].color().name() == DARK.series_1
    assert plot._curves["1.2"].opts["pen"].color().name() == DARK.head_color(1, 2)
    assert DARK.head_color(1, 2) != LIGHT.head_color(1, 2)


def test_a_hidden_plot_draws_when_shown(plot):
    plot.hide()
    plot.set_picture(losses())
    assert plot._curves == {}
    plot.show()
    assert set(plot._curves) == {"train", "validation"}


def drawn_numbers(plot: CurvePlot, side: str, scale: float) -> list[str]:
    """What the axis writes on a screen of that scale."""
    plot.grab()  # lays out the axes
    image = QImage(plot.size() * scale, QImage.Format.Format_ARGB32)
    image.setDevicePixelRatio(scale)
    painter = QPainter(image)
    try:
        _, _, texts = plot._area.axes[side].generateDrawSpecs(painter)
    finally:
        painter.end()
    return [text for _, _, text in texts]


@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("log_y", [False, True])
@pytest.mark.parametrize("top", [2.6, 4.9, 9.7, 130.0, 4e4])
def test_every_axis_writes_two_numbers_at_least_at_every_size(plot, top, log_y, scale):
    plot.set_picture(
        losses(series=(Series(name="train", x=np.arange(3.0), y=np.array([top, 0.9 * top, 0.8 * top])),), log_y=log_y)
    )
    for height in range(150, 420, 13):
        plot.resize(240 + height, height)
        for side in ("left", "bottom"):
            assert len(drawn_numbers(plot, side, scale)) >= 2, (side, height)


def test_the_number_at_the_top_of_an_axis_is_written_whole(plot):
    plot.set_picture(losses())
    plot._area.box.setYRange(0.0, 4.0, padding=0)
    assert drawn_numbers(plot, "left", 1.0)[-1] == "4.0"
    top = plot._area.axes["left"].mapToScene(QPointF(0.0, 0.0)).y()
    assert top >= 0.4 * QFontMetricsF(caption_font()).height()  # pyqtgraph centres 0.8 of a line's height on the tick
