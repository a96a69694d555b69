"""Pictures for tests of plots, and the look at pixels."""

import numpy as np
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from explorer.viewmodels.colormaps import lookup_table
from explorer.viewmodels.records import HeatmapPicture, PatchPicture

ROWS, COLUMNS, FIRST = 2, 3, 1
"""Of the patches in a `patch_picture`, and the index of the first among the tokens."""


def heatmap(values: np.ndarray, **changes) -> HeatmapPicture:
    """The whole of a small matrix, black on white from its least to its largest value."""
    settings = {
        "values": values.astype(np.float32),
        "shape": values.shape,
        "rows": (0, values.shape[0]),
        "cols": (0, values.shape[1]),
        "levels": (float(np.nanmin(values)), float(np.nanmax(values))),
        "title": "Attention weights, layer 0 head 0",
        "scale_name": "attention weight, linear",
        "colormap": "viridis",
    }
    return HeatmapPicture(**(settings | changes))


def patch_picture(**changes) -> PatchPicture:
    """A white picture of two rows of three patches; the last one of the first row has all the weight."""
    weights = np.zeros((ROWS, COLUMNS), dtype=np.float32)
    weights[0, 2] = 0.5
    settings = {
        "image": np.full((ROWS * 4, COLUMNS * 4, 3), 255, dtype=np.uint8),
        "values": weights,
        "weights": weights,
        "levels": (0.0, 0.5),
        "ends": ("0", "0.5"),
        "query": 0,
        "place": None,
        "first": FIRST,
        "asks": True,
        "title": "Where query 0, class, looks",
        "note": "",
        "scale_name": "weight, linear",
        "colormap": "grey",
    }
    return PatchPicture(**(settings | changes))


def color_of(value: float, picture: HeatmapPicture) -> QColor:
    """The colour that the map gives a value, from the table alone."""
    low, high = picture.levels
    red, green, blue, _ = lookup_table(picture.colormap)[round(255 * (value - low) / (high - low))]
    return QColor(int(red), int(green), int(blue))


def pixel(widget: QWidget, point: QPoint) -> QColor:
    """What is on screen at a point of a widget, in logical pixels."""
    image = widget.window().grab().toImage()
    return image.pixelColor(widget.mapTo(widget.window(), point) * image.devicePixelRatio())
