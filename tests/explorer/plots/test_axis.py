from __future__ import annotations

import pytest
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from explorer.plots.axis import TokenAxis
from explorer.plots.plot_area import PlotArea
from explorer.theme.colors import LIGHT
from explorer.theme.token_text import Name, Reading


@pytest.mark.parametrize("size", [1300, 14208, 131072])
@pytest.mark.parametrize("width", [200, 523, 1700])
def test_indices_along_the_top_never_touch(qtbot: QtBot, size: int, width: int) -> None:
    axis = TokenAxis(LIGHT, "top")
    qtbot.addWidget(axis)
    axis.resize(width, 60)
    axis.set_content((), size, "key (column)", "key")
    axis.set_span((0.0, float(size)))
    indices = axis._regular_indices()
    pixels_apart = indices.step * width / size
    # The last label may be moved inwards by half its width, to stay inside the axis.
    assert pixels_apart > 1.5 * QFontMetricsF(axis._font).horizontalAdvance(str(indices[-1]))


@pytest.mark.parametrize("width", [200, 523, 1700])
def test_times_are_written_at_round_places_and_never_touch(qtbot: QtBot, width: int) -> None:
    axis = TokenAxis(LIGHT, "top")
    qtbot.addWidget(axis)
    axis.resize(width, 60)
    times = tuple(Reading(f"{0.02 * frame:.2f} s") for frame in range(1500))
    axis.set_content(times, 1500, "key: frame the encoder reads", "key")
    axis.set_span((0.0, 1500.0))
    indices = axis._regular_indices()
    assert all(axis._thinned_label(index) == times[index] for index in indices)
    assert indices.step * width / 1500 > 1.5 * QFontMetricsF(axis._font).horizontalAdvance("28.00 s")


def test_names_of_patches_give_way_to_indices_where_few_fit(qtbot: QtBot) -> None:
    axis = TokenAxis(LIGHT, "top")
    qtbot.addWidget(axis)
    axis.resize(200, 60)
    axis.set_content(tuple(Name(f"patch 0,{n}") for n in range(1500)), 1500, "key (column)", "key")
    axis.set_span((0.0, 1500.0))
    assert axis._thinned_label(axis._regular_indices()[1]) == str(axis._regular_indices()[1])


def test_numbers_are_counted_from_the_first_and_written_where_they_are_round(qtbot: QtBot) -> None:
    axis = TokenAxis(LIGHT, "top")
    qtbot.addWidget(axis)
    axis.resize(500, 60)
    axis.set_content((), 255, "distance", "text", first=-127)
    axis.set_span((0.0, 255.0))
    numbers = [index - 127 for index in axis._regular_indices()]
    assert 0 in numbers
    assert all(number % (numbers[1] - numbers[0]) == 0 for number in numbers)


def test_every_second_token_is_written_small_enough_to_stand_alone(qtbot: QtBot) -> None:
    axis = TokenAxis(LIGHT, "left")
    qtbot.addWidget(axis)
    full = QFontMetricsF(axis._font).height()
    n_rows = 60
    axis.resize(60, round(n_rows * 0.4 * full))  # too dense for every row, and for every second one at full size
    axis.set_content(("a",) * n_rows, n_rows, "query (row)", "query")
    axis.set_span((0.0, float(n_rows)))
    assert axis._regular_indices().step == 2
    assert QFontMetricsF(axis._regular_font()).height() <= 0.8 * full + 1


@pytest.mark.parametrize(("length", "is_cut"), [(60, True), (400, False)])
def test_the_title_of_a_short_axis_is_cut_with_a_sign(qtbot: QtBot, length: int, is_cut: bool):
    window = QWidget()
    qtbot.addWidget(window)
    axis = PlotArea(window).axes["left"]
    axis.set_title("tokens a second")
    axis.resize(64, length)
    assert ("…" in axis.labelString()) == is_cut
