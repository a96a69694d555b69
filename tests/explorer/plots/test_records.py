"""A picture that contradicts itself cannot be made."""

import numpy as np
import pytest

from explorer.viewmodels.records import CurvePicture, Series
from tests.explorer.plots.pictures import heatmap


@pytest.mark.parametrize(
    "changes",
    [
        {"masked": np.zeros((3, 3), bool)},
        {"rows": (0, 3)},
        {"cols": (1, 1)},
        {"row_labels": ("a",)},
        {"given": np.zeros(3, np.float32)},
        {"received": np.zeros(2, np.float32)},
    ],
)
def test_parts_of_a_picture_agree_on_its_shape(changes):
    with pytest.raises(AssertionError):
        heatmap(np.zeros((2, 3)) + np.arange(3), **changes)


def test_a_token_finds_the_pooled_cell_that_covers_it():
    pooled = heatmap(np.eye(4), shape=(10, 10), rows=(2, 10), cols=(0, 8), cells=(2, 2))
    assert pooled.index_of(2, 0) == (0, 0)
    assert pooled.index_of(9, 7) == (3, 3)
    assert pooled.index_of(5, 2) == (1, 1)
    assert pooled.index_of(1, 0) is None
    assert pooled.index_of(9, 8) is None


@pytest.mark.parametrize(("n", "per_value"), [(81, 5), (9, 4), (10, 7), (7, 7), (8, 1)])
def test_each_cell_is_read_from_the_value_that_was_made_of_it(n: int, per_value: int):
    n_values = -(-n // per_value)
    picture = heatmap(np.eye(n_values) + 1, shape=(n, n), rows=(0, n), cols=(0, n), cells=(per_value, per_value))
    for value in range(n_values):
        for cell in range(n)[value * per_value : (value + 1) * per_value]:
            assert picture.index_of(cell, n - 1) == (value, n_values - 1)


def test_a_picture_has_the_values_that_its_cells_make():
    with pytest.raises(AssertionError):
        heatmap(np.eye(3), shape=(9, 9), rows=(0, 9), cols=(0, 9), cells=(5, 5))


def test_curves_have_names_of_their_own():
    one = Series(name="loss", x=np.arange(3.0), y=np.zeros(3))
    with pytest.raises(AssertionError):
        CurvePicture(series=(one, one), title="Loss", x_title="step", y_title="loss")
