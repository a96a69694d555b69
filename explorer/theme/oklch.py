"""Colours of equal lightness: OKLCH to sRGB.

Source: B. Ottosson, "A perceptual color space for image processing" (2020), https://bottosson.github.io/posts/oklab/
"""

import math


def oklch_to_hex(lightness: float, chroma: float, hue_degrees: float) -> str:
    """Return "#rrggbb" of the colour, with chroma lowered until sRGB can show it."""
    red, green, blue = oklch_to_rgb(lightness, chroma, hue_degrees)
    return f"#{red:02x}{green:02x}{blue:02x}"


def oklch_to_rgb(lightness: float, chroma: float, hue_degrees: float) -> tuple[int, int, int]:
    """The same as channels from 0 to 255."""
    hue = math.radians(hue_degrees)
    linear = _linear_rgb(lightness, chroma, hue)
    while chroma > 0.0 and not all(-1e-4 <= channel <= 1.0001 for channel in linear):
        chroma = max(0.0, chroma - 0.005)
        linear = _linear_rgb(lightness, chroma, hue)
    red, green, blue = (round(255 * _gamma(min(1.0, max(0.0, channel)))) for channel in linear)
    return red, green, blue


def _linear_rgb(lightness: float, chroma: float, hue: float) -> tuple[float, float, float]:
    a, b = chroma * math.cos(hue), chroma * math.sin(hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )


def _gamma(linear: float) -> float:
    """sRGB transfer function (IEC 61966-2-1)."""
    return 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055
