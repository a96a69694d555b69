from __future__ import annotations

import numpy as np

from explorer.plots.pooling import pooled_picture, pooled_tiles
from explorer.viewmodels.records import HeatmapPicture


def _picture(values: np.ndarray, *, colormap: str = "viridis", masked: np.ndarray | None = None) -> HeatmapPicture:
    return HeatmapPicture(
        values=values.astype(np.float32),
        shape=values.shape,
        rows=(0, values.shape[0]),
        cols=(0, values.shape[1]),
        levels=(-1.0, 1.0),
        title="weights",
        scale_name="linear",
        colormap=colormap,  # pyright: ignore[reportArgumentType]
        masked=masked,
    )


def test_each_pixel_shows_the_largest_of_its_cells_none_is_skipped() -> None:
    values = np.zeros((7, 5))
    values[6, 3], values[2, 1] = 0.9, 0.4
    pooled = pooled_picture(_picture(values), 3, 2)
    expected = np.zeros((3, 3))
    expected[2, 1], expected[0, 0] = 0.9, 0.4
    np.testing.assert_array_equal(pooled.values, expected.astype(np.float32))
    assert (pooled.rows, pooled.cols, pooled.cells) == ((0, 7), (0, 5), (3, 2))
    assert pooled_picture(pooled, 2, 2).cells == (6, 4)


def test_signed_values_keep_the_one_farthest_from_zero() -> None:
    pooled = pooled_picture(_picture(np.array([[0.2, -0.7], [0.1, 0.5]]), colormap="diverging"), 2, 2)
    assert pooled.values.tolist() == [[np.float32(-0.7)]]


def test_logarithms_keep_the_largest_weight_not_the_longest_number() -> None:
    assert pooled_picture(_picture(np.array([[-4.0, -1.0]])), 1, 2).values.tolist() == [[-1.0]]


def test_a_pixel_is_masked_only_where_all_of_its_cells_are() -> None:
    masked = np.array([[False, True], [True, True], [True, True], [True, True]])
    pooled = pooled_picture(_picture(np.where(masked, 0.0, 0.3), masked=masked), 2, 2)
    assert pooled.masked is not None
    assert pooled.masked.tolist() == [[False], [True]]
    assert pooled.values[0, 0] == np.float32(0.3)


def test_a_tile_keeps_its_largest_weights_and_is_masked_only_where_a_whole_block_is() -> None:
    tile = np.full((1, 1, 3, 3), np.nan, dtype=np.float32)
    tile[0, 0, 0, 1], tile[0, 0, 2, 0] = 0.7, 0.2
    pooled = pooled_tiles(tile, 2, 2)
    expected = np.array([[0.7, np.nan], [0.2, np.nan]], dtype=np.float32)
    np.testing.assert_array_equal(pooled[0, 0], expected)


def test_a_tile_that_is_no_square_is_pooled_along_each_side_by_itself() -> None:
    tile = np.arange(10, dtype=np.float32).reshape(1, 1, 2, 5)
    expected = np.array([[1, 3, 4], [6, 8, 9]], dtype=np.float32)
    np.testing.assert_array_equal(pooled_tiles(tile, 1, 2)[0, 0], expected)
