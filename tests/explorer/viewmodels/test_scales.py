from __future__ import annotations

import numpy as np
import pytest

from explorer.viewmodels.scales import scaled

WEIGHTS = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.8, 0.05, 0.15]], dtype=np.float32)
PEAKS = WEIGHTS.max(axis=1)


def test_linear_leaves_weights_as_they_are_from_0_to_1() -> None:
    drawn = scaled(WEIGHTS, PEAKS, "linear")
    assert drawn.values is WEIGHTS
    assert drawn.levels == (0.0, 1.0)


def test_linear_reaches_to_weights_above_1_of_other_normalisers() -> None:
    assert scaled(WEIGHTS * 3, PEAKS, "linear").levels == (0.0, 3.0)


def test_log_shows_powers_of_ten_and_nothing_where_there_is_no_weight() -> None:
    drawn = scaled(WEIGHTS, PEAKS, "log")
    assert drawn.values[1, 0] == pytest.approx(np.log10(0.5))
    assert drawn.values[0, 1] == -np.inf
    assert drawn.levels == (-4.0, 0.0)
    assert dict(drawn.ticks)[-1.0] == "0.1"


def test_row_maximum_makes_every_row_reach_1() -> None:
    drawn = scaled(WEIGHTS, PEAKS, "row_max")
    assert drawn.values.max(axis=1) == pytest.approx([1, 1, 1])
    assert drawn.values[2, 2] == pytest.approx(0.15 / 0.8)


def test_row_maximum_of_a_part_is_that_of_the_whole_row() -> None:
    drawn = scaled(WEIGHTS[:, 1:], PEAKS, "row_max", n_first_keys=0)
    assert drawn.values[2] == pytest.approx([0.05 / 0.8, 0.15 / 0.8])


def test_a_row_without_weight_stays_empty() -> None:
    drawn = scaled(np.zeros((1, 2), np.float32), np.zeros(1, np.float32), "row_max")
    assert drawn.values.tolist() == [[0.0, 0.0]]


def test_the_sink_is_left_out_and_colours_end_at_the_largest_of_the_rest() -> None:
    drawn = scaled(WEIGHTS, PEAKS, "sink_excluded")
    assert drawn.levels == (0.0, 0.5)
    assert drawn.left_out is not None
    assert drawn.left_out.tolist() == [[True, False, False]] * 3


def test_a_part_without_the_first_key_leaves_nothing_out() -> None:
    drawn = scaled(WEIGHTS[:, 1:], PEAKS, "sink_excluded", n_first_keys=0)
    assert drawn.left_out is None


def test_sink_excluded_names_every_key_that_the_first_pixel_stands_for() -> None:
    assert scaled(WEIGHTS, PEAKS, "sink_excluded").name == "attention weight, key 0 left out"
    assert scaled(WEIGHTS, PEAKS, "sink_excluded", n_first_keys=32).name == "attention weight, keys 0 to 31 left out"
