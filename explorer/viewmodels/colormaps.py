"""Colour maps by name, as tables that the plots and the exported figures share."""

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from explorer.viewmodels.records import COLORMAPS

_FOLDER = Path(__file__).resolve().parents[2] / "resources" / "colormaps"
"""viridis, magma, cividis: 256 rows of red, green, blue. Source: matplotlib (CC0)."""

_LIGHT_DIVERGING = (
    (5, 48, 97),
    (33, 102, 172),
    (67, 147, 195),
    (146, 197, 222),
    (209, 229, 240),
    (247, 247, 247),
    (253, 219, 199),
    (244, 165, 130),
    (214, 96, 77),
    (178, 24, 43),
    (103, 0, 31),
)
"""ColorBrewer's RdBu, blue first. Source: C. Brewer, https://colorbrewer2.org (Apache 2.0); matplotlib's "RdBu_r"."""

_DARK_DIVERGING = (
    (189, 221, 254),
    (101, 176, 251),
    (78, 131, 184),
    (55, 88, 122),
    (33, 49, 65),
    (13, 13, 13),
    (63, 41, 35),
    (118, 71, 59),
    (178, 104, 85),
    (242, 138, 112),
    (252, 205, 192),
)
"""Blue (OKLCH hue 250) and red (hue 35) of equal lightness, rising from 0.16 in five even steps."""


@cache
def lookup_table(name: str, *, is_dark: bool = False) -> NDArray[np.uint8]:
    """Return [256, 4] RGBA, read-only. Raises KeyError for a name that is not in COLORMAPS.

    "grey" and "diverging" know the paper they lie on: grey runs from paper to ink, and diverging has white on light,
    near-black on dark, in its middle. On light they are matplotlib's "gray_r" and "RdBu_r"; the others have one form.
    """
    if name not in COLORMAPS:
        raise KeyError(name)
    if name == "grey":
        ramp = np.arange(256) if is_dark else np.arange(255, -1, -1)
        colors = np.repeat(ramp[:, None], 3, axis=1)
    elif name == "diverging":
        colors = _interpolate(_DARK_DIVERGING if is_dark else _LIGHT_DIVERGING)
    else:
        colors = np.loadtxt(_FOLDER / f"{name}.csv", delimiter=",", skiprows=1)
    table = np.full((256, 4), 255, dtype=np.uint8)
    table[:, :3] = np.round(colors)
    table.flags.writeable = False
    return table


def _interpolate(anchors: tuple[tuple[int, int, int], ...]) -> NDArray[np.float64]:
    """Straight lines between evenly spaced colours: [256, 3]."""
    places = np.linspace(0.0, 1.0, len(anchors))
    wanted = np.linspace(0.0, 1.0, 256)
    colors = np.empty((256, 3))
    for channel, levels in enumerate(zip(*anchors, strict=True)):
        colors[:, channel] = np.interp(wanted, places, levels)
    return colors
