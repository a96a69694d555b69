"""Zoom and pan keep what the user points at, and never leave the matrix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF

from explorer.plots.zoom import Frame

SHAPES = st.tuples(st.integers(1, 100_000), st.integers(1, 100_000))
POINTS = st.builds(QPointF, st.floats(0, 640), st.floats(0, 480))


def whole(shape: tuple[int, int]) -> Frame:
    return Frame.whole(shape, 640.0, 480.0)


def test_row_0_is_at_the_top_and_column_0_at_the_left():
    frame = whole((3, 4))
    assert frame.cell_at(QPointF(1, 1)) == (0, 0)
    assert frame.cell_at(QPointF(639, 1)) == (0, 3)
    assert frame.cell_at(QPointF(1, 479)) == (2, 0)


def test_zoom_keeps_the_cell_under_the_pointer():
    frame, pointer = whole((100, 100)), QPointF(200.0, 120.0)
    assert frame.zoomed(4.0, pointer).at(pointer) == pytest.approx(frame.at(pointer))


@given(shape=SHAPES, factors=st.lists(st.floats(0.1, 10.0), max_size=6), pointer=POINTS, by=POINTS)
def test_no_zoom_and_no_pan_leaves_the_matrix(shape, factors, pointer, by):
    frame = whole(shape)
    for factor in factors:
        frame = frame.zoomed(factor, pointer).panned(by - QPointF(320, 240))
    for (start, stop), size in zip((frame.rows, frame.cols), shape, strict=True):
        assert -1e-6 <= start < stop <= size * (1 + 1e-9) + 1e-6


@given(shape=SHAPES, pointer=POINTS)
def test_zooming_out_shows_everything_again(shape, pointer):
    frame = whole(shape).zoomed(3.0, pointer).zoomed(1e-6, pointer)
    assert frame == whole(shape)


def test_the_deepest_zoom_shows_four_cells_and_keeps_their_form():
    frame = whole((100, 200)).zoomed(1e9, QPointF(0, 0))
    assert frame.rows == pytest.approx((0.0, 4.0))
    assert frame.cols == pytest.approx((0.0, 8.0))


def test_a_pan_moves_the_matrix_with_the_pointer():
    frame = whole((100, 100)).zoomed(2.0, QPointF(320, 240))
    assert frame.panned(QPointF(64, 0)).cols == pytest.approx((20.0, 70.0))
    assert frame.panned(QPointF(0, 48)).rows == pytest.approx((20.0, 70.0))


def test_a_cell_out_of_view_is_brought_to_the_edge():
    frame = whole((100, 100)).zoomed(10.0, QPointF(0, 0))
    assert frame.rows == pytest.approx((0.0, 10.0))
    moved = frame.revealing(20, 3)
    assert moved.rows == pytest.approx((11.0, 21.0))
    assert moved.cols == frame.cols


def test_pixels_and_cells_are_inverse():
    frame = whole((7, 5)).zoomed(1.4, QPointF(100, 100))
    center = frame.pixels((3, 4), (2, 3)).center()
    assert frame.cell_at(center) == (3, 2)


def test_cells_on_screen_in_part_count_as_on_screen():
    frame = whole((10, 10)).showing((2.5, 6.5), (0.0, 4.0))
    assert frame.whole_cells() == ((2, 7), (0, 4))
