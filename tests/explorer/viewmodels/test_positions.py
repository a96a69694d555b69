from typing import Any

import numpy as np
import pytest

from core_model.results import PositionEncoding
from explorer.state.app_state import AppState
from explorer.viewmodels import positions
from explorer.viewmodels.positions import MOST_CURVES, first_dimensions, toggled


def positions_picture(encoding: PositionEncoding, state: AppState) -> Any:
    return positions.positions_picture(encoding, state)


def table(n_positions: int = 10, n_dimensions: int = 16) -> Any:
    values = np.arange(n_positions * n_dimensions, dtype=np.float32).reshape(n_positions, n_dimensions) - 3
    names = tuple(f"{i} sin" for i in range(n_dimensions))
    return PositionEncoding(stack="decoder", layer=0, kind="sinusoidal", table=values, dimensions=names)


def test_curves_are_columns_of_the_table_against_position():
    encoding = table()
    picture = positions_picture(encoding, AppState(position_curves=(3, 5)))
    assert [series.name for series in picture.curves.series] == ["dimension 3 sin", "dimension 5 sin"]
    for series, dimension in zip(picture.curves.series, (3, 5), strict=True):
        assert series.x.tolist() == list(range(10))
        np.testing.assert_array_equal(series.y, encoding.table[:, dimension])


def test_matrix_is_the_whole_table_with_zero_in_the_middle_of_the_colours():
    encoding = table()
    picture = positions_picture(encoding, AppState())
    np.testing.assert_array_equal(picture.matrix.values, encoding.table)
    assert picture.matrix.levels == (-156, 156) and picture.matrix.colormap == "diverging"
    assert picture.matrix.col_labels == encoding.dimensions


def test_chosen_dimensions_a_narrower_model_lacks_are_left_out():
    assert positions_picture(table(n_dimensions=4), AppState(position_curves=(2, 9))).dimensions == (2,)
    assert positions_picture(table(n_dimensions=4), AppState(position_curves=(9,))).dimensions == first_dimensions(4)


def test_relative_bias_is_one_curve_a_head_against_distance():
    bias = np.array([[-2.0, -1.0, 0.0], [-4.0, -2.0, 0.0]], dtype=np.float32)
    encoding = PositionEncoding(
        stack="decoder", layer=1, kind="alibi", bias=bias, distances=np.array([-2, -1, 0], dtype=np.int64)
    )
    picture = positions_picture(encoding, AppState())
    assert [series.name for series in picture.curves.series] == ["head 0", "head 1"]
    assert picture.curves.series[1].x.tolist() == [-2, -1, 0]
    assert picture.curves.series[1].y.tolist() == [-4, -2, 0]
    assert picture.matrix.values.tolist() == [[0, -1, -2], [0, -2, -4]] and picture.dimensions == ()


def test_bias_both_ways_names_each_distance():
    bias = np.array([[1.0, 0.0, 3.0]], dtype=np.float32)
    encoding = PositionEncoding(
        stack="encoder", layer=0, kind="bucketed", bias=bias, distances=np.array([-1, 0, 1], dtype=np.int64)
    )
    matrix = positions_picture(encoding, AppState()).matrix
    assert (matrix.values.tolist(), matrix.col_labels, matrix.col_first) == ([[1, 0, 3]], (), -1)


def test_a_model_without_positions_has_words_and_no_picture():
    picture = positions_picture(PositionEncoding(stack="encoder", layer=0, kind="none"), AppState())
    assert picture.curves is None and picture.matrix is None
    assert "adds nothing for position" in picture.explanation


@pytest.mark.parametrize("n_dimensions", [1, 3, 6, 768])
def test_first_dimensions_are_few_and_there(n_dimensions):
    found = first_dimensions(n_dimensions)
    assert found[0] == 0 and found[-1] == n_dimensions - 1
    assert len(set(found)) == len(found) <= 6


def test_a_dimension_is_added_once_and_taken_away_again():
    assert toggled((1, 2), 7) == (1, 2, 7)
    assert toggled((1, 2, 7), 2) == (1, 7)


def test_the_oldest_curve_gives_way_where_there_are_too_many():
    full = tuple(range(MOST_CURVES))
    assert toggled(full, 99) == (*full[1:], 99)


def test_vectors_of_distances_are_drawn_against_distance():
    values = np.arange(15, dtype=np.float32).reshape(5, 3)
    distances = np.arange(-2, 3)
    picture = positions_picture(
        PositionEncoding(
            stack="encoder",
            layer=1,
            kind="disentangled",
            table=values,
            dimensions=("0", "1", "2"),
            distances=distances,
        ),
        AppState(position_curves=(1,)),
    )
    assert picture.curves.series[0].x.tolist() == [-2, -1, 0, 1, 2]
    assert picture.curves.x_title == "distance, key minus query"
    assert (picture.matrix.row_labels, picture.matrix.row_first) == ((), -2)
