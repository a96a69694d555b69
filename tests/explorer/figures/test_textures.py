from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.textures import PITCH, dots, hatch_lines


def rng_cells(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(1).random(shape) < 0.4


def test_hatch_lies_in_the_cells_and_nowhere_else():
    cells = rng_cells((5, 9))
    lines = hatch_lines(cells, 90.0, 50.0, cells.shape)
    share = np.linspace(0.001, 0.999, 101)[:, None]
    for start, end in lines:
        points = start + share * (end - start)
        assert cells[(points[:, 1] / 10).astype(int), (points[:, 0] / 10).astype(int)].all()


def test_hatch_covers_the_cells_evenly():
    """Diagonals PITCH apart have a length of area / PITCH."""
    cells = rng_cells((40, 40))
    lines = hatch_lines(cells, 800.0, 800.0, cells.shape)
    length = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1).sum()
    assert length == pytest.approx(cells.mean() * 800 * 800 / PITCH, rel=0.02)


def test_a_triangle_is_hatched_by_whole_lines():
    n = 100
    lines = hatch_lines(np.triu(np.ones((n, n), dtype=bool), 1), 300.0, 300.0, (n, n))
    assert len(lines) < 2 * 600 / PITCH


def test_dots_lie_in_the_cells():
    cells = rng_cells((5, 9))
    places = dots(cells, 90.0, 50.0, cells.shape)
    assert cells[(places[:, 1] / 10).astype(int), (places[:, 0] / 10).astype(int)].all()
    assert len(places) == pytest.approx(cells.mean() * 90 * 50 / PITCH**2, rel=0.1)


def test_of_a_last_cell_that_is_a_part_the_part_is_filled():
    """Two and a half cells of 20 in a length of 50."""
    cells = np.array([[False, False, True]])
    for x in (hatch_lines(cells, 50.0, 20.0, (1, 2.5))[..., 0], dots(cells, 50.0, 20.0, (1, 2.5))[:, 0]):
        assert 40 <= x.min() < 40 + PITCH and 50 - PITCH < x.max() <= 50


def test_nothing_is_drawn_where_no_cell_is_hidden():
    none = np.zeros((3, 3), dtype=bool)
    assert hatch_lines(none, 30.0, 30.0, none.shape).shape == (0, 2, 2)
    assert dots(none, 30.0, 30.0, none.shape).shape == (0, 2)
