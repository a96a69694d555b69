"""The conversion agrees with the numbers of its author and with sRGB's own corners."""

import pytest

from explorer.theme.oklch import oklch_to_hex, oklch_to_rgb


@pytest.mark.parametrize(
    ("lightness", "chroma", "hue", "expected"),
    [
        (1.0, 0.0, 0.0, "#ffffff"),
        (0.0, 0.0, 0.0, "#000000"),
        # CSS Color 4: red, lime and blue of sRGB in OKLCH
        (0.62796, 0.25768, 29.234, "#ff0000"),
        (0.86644, 0.29483, 142.495, "#00ff00"),
        (0.45201, 0.31321, 264.052, "#0000ff"),
    ],
)
def test_corners_of_srgb(lightness, chroma, hue, expected):
    assert oklch_to_hex(lightness, chroma, hue) == expected


def test_a_colour_beyond_srgb_loses_chroma_and_not_hue():
    red, green, blue = oklch_to_rgb(0.7, 0.4, 29.0)
    assert red > 250
    assert 0 < blue < green < red
