"""From values to pixels. The tables themselves are explorer.viewmodels.colormaps, which the export shares."""

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage

from explorer.viewmodels.records import BoolArray, FloatArray


def colored_image(
    values: FloatArray, levels: tuple[float, float], table: NDArray[np.uint8], hidden: BoolArray | None = None
) -> QImage:
    """Image of values [r, c], row 0 at the top; transparent where the value is NaN or `hidden`, clipped to `levels`.

    The pixels are mapped here, once, into the format that Qt paints without conversion, so that a repaint is a copy.
    """
    pixels = _pixels(values, levels, table, hidden)
    height, width = pixels.shape
    image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied)
    return image.copy()  # Qt does not keep the array alive


def mask_image(cells: BoolArray) -> QImage:
    """Image of cells [r, c] that is opaque where they are True."""
    alpha = np.ascontiguousarray(cells, dtype=np.uint8) * np.uint8(255)
    height, width = alpha.shape
    return QImage(alpha.data, width, height, width, QImage.Format.Format_Alpha8).copy()


def _pixels(
    values: FloatArray, levels: tuple[float, float], table: NDArray[np.uint8], hidden: BoolArray | None
) -> NDArray[np.uint32]:
    """[r, c] of 0xAARRGGBB."""
    low, high = levels
    scaled = values.astype(np.float32)
    scaled -= np.float32(low)
    scaled *= np.float32(255.0 / (high - low) if high > low else 1.0)
    scaled += np.float32(0.5)
    np.fmin(scaled, np.float32(255.0), out=scaled)
    np.fmax(scaled, np.float32(0.0), out=scaled)  # fmin and fmax replace NaN, which has no integer
    red, green, blue, alpha = table.astype(np.uint32).T
    words = alpha << 24 | red << 16 | green << 8 | blue
    pixels = words[scaled.astype(np.uint8)]
    unknown = np.isnan(values)
    if hidden is not None:
        unknown |= hidden
    pixels[unknown] = 0
    return pixels
