"""Tables agree with matplotlib, which draws the exported figures; pixels agree with tables."""

import matplotlib
import numpy as np
import pytest

from explorer.plots.colormaps import colored_image, mask_image
from explorer.viewmodels.colormaps import lookup_table
from explorer.viewmodels.records import COLORMAPS

MATPLOTLIB_NAMES = {
    "viridis": "viridis",
    "cividis": "cividis",
    "magma": "magma",
    "grey": "gray_r",
    "diverging": "RdBu_r",
}


@pytest.mark.parametrize("name", COLORMAPS)
def test_table_is_matplotlibs(name):
    expected = matplotlib.colormaps[MATPLOTLIB_NAMES[name]](np.arange(256))
    np.testing.assert_allclose(lookup_table(name) / 255, expected, atol=1 / 255)


def test_diverging_is_white_in_the_middle_on_light_and_near_black_on_dark():
    assert lookup_table("diverging")[127:129, :3].min() > 240
    assert lookup_table("diverging", is_dark=True)[127:129, :3].max() < 20


def test_arms_of_the_dark_diverging_map_rise_alike():
    """Relative luminance (Rec. 709) of value +v and of -v differ little: neither sign looks larger."""
    channels = (lookup_table("diverging", is_dark=True)[:, :3] / 255) ** 2.2
    luminance = channels @ [0.2126, 0.7152, 0.0722]
    np.testing.assert_allclose(luminance, luminance[::-1], atol=0.06)
    assert (np.diff(luminance[128:]) >= -1e-3).all()


def test_an_unknown_name_is_refused():
    with pytest.raises(KeyError):
        lookup_table("jet")


def test_image_holds_the_colours_of_the_table_row_by_row():
    values = np.array([[0.0, 0.5, 1.0], [1.0, 0.25, 0.0]])
    table = lookup_table("viridis")
    image = colored_image(values, (0.0, 1.0), table)
    for row in range(2):
        for col in range(3):
            red, green, blue, _ = table[int(255 * values[row, col] + 0.5)]
            assert image.pixelColor(col, row).getRgb() == (red, green, blue, 255)


def test_values_beyond_the_levels_take_the_end_colours():
    image = colored_image(np.array([[-np.inf, -5.0, 5.0, np.inf]]), (0.0, 1.0), lookup_table("magma"))
    assert image.pixelColor(0, 0) == image.pixelColor(1, 0)
    assert image.pixelColor(2, 0) == image.pixelColor(3, 0)
    assert image.pixelColor(0, 0) != image.pixelColor(3, 0)


def test_nan_and_hidden_cells_are_transparent():
    hidden = np.array([[False, True, False]])
    image = colored_image(np.array([[np.nan, 1.0, 0.0]]), (0.0, 1.0), lookup_table("viridis"), hidden)
    assert [image.pixelColor(col, 0).alpha() for col in range(3)] == [0, 0, 255]


def test_equal_levels_draw_one_colour():
    image = colored_image(np.full((1, 2), 3.0), (3.0, 3.0), lookup_table("viridis"))
    assert image.pixelColor(0, 0) == image.pixelColor(1, 0)


def test_mask_is_opaque_where_true():
    image = mask_image(np.array([[True, False, True]]))
    assert [image.pixelColor(col, 0).alpha() for col in range(3)] == [255, 0, 255]
