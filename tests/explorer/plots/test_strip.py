"""Bars beside a matrix: none is skipped where there are more of them than pixels."""

import numpy as np
import pytest

from explorer.plots.strip import THICKNESS, MarginalStrip
from explorer.theme.colors import LIGHT


def strip_of(qtbot, values: np.ndarray, length: int) -> MarginalStrip:
    strip = MarginalStrip(LIGHT, "bottom")
    qtbot.addWidget(strip)
    strip.resize(length, round(THICKNESS))
    strip.set_content(values, (0, len(values)), 1, "received", "key")
    strip.set_span((0.0, float(len(values))))
    return strip


@pytest.mark.parametrize("place", [0, 17, 2345, 4998])
def test_the_largest_of_many_bars_is_seen_at_its_full_height(qtbot, place: int):
    values = np.full(4999, 0.01)
    values[place] = 1.0
    strip = strip_of(qtbot, values, 100)
    image = strip.grab().toImage()
    paper = (
        image.pixelColor(1, image.height() - 1).name()
        if place > 200
        else image.pixelColor(98, image.height() - 1).name()
    )
    lowest = [image.pixelColor(x, image.height() - 2).name() != paper for x in range(100)]
    assert [x for x in range(100) if lowest[x]] == pytest.approx([place / 50], abs=1.0)


def test_few_bars_are_drawn_one_by_one(qtbot):
    strip = strip_of(qtbot, np.array([0.5, 1.0, 0.25]), 90)
    assert [round(bar.height(), 1) for bar in strip._bars(1.0)] == [14.0, 28.0, 7.0]


def test_the_last_bar_is_as_long_as_what_it_stands_for(qtbot):
    strip = strip_of(qtbot, np.ones(3), 90)
    strip.set_content(np.ones(3), (0, 9), 4, "received", "key")
    strip.set_span((0.0, 9.0))
    assert [(bar.left(), bar.right()) for bar in strip._bars(1.0)] == [(0, 39), (40, 79), (80, 89)]  # a gap of 1


@pytest.mark.parametrize("n", [4999, 5001, 5003])
def test_the_last_of_many_bars_is_seen_however_little_of_a_pixel_is_left_for_it(qtbot, n: int):
    values = np.zeros(n)
    values[-1] = 1.0
    image = strip_of(qtbot, values, 100).grab().toImage()
    assert image.pixelColor(99, image.height() - 2) != image.pixelColor(0, image.height() - 2)
