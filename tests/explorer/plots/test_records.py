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
    pooled = heatmap(np.eye(4), shape=(10, 10), rows=(2, 10), cols=(0, 8))
    assert pooled.index_of(2, 0) == (0, 0)
    assert pooled.index_of(9, 7) == (3, 3)
    assert pooled.index_of(5, 2) == (1, 1)
    assert pooled.index_of(1, 0) is None
    assert pooled.index_of(9, 8) is None


def test_curves_have_names_of_their_own():
    one = Series(name="loss", x=np.arange(3.0), y=np.zeros(3))
    with pytest.raises(AssertionError):
        CurvePicture(series=(one, one), title="Loss", x_title="step", y_title="loss")
