"""Pixels as a person sees them: what was done to a picture's colours for the model, undone.

Shape letters: K channels, Y rows, X columns.
"""

from __future__ import annotations

import numpy as np

from core_model.preprocess.picture_settings import PictureSettings
from core_model.results import ByteArray, FloatArray, read_only


def as_seen(pixels_KYX: FloatArray, settings: PictureSettings) -> ByteArray:
    """[Y, X, 3] red, green and blue of 0 to 255 of what was resized and cut out; one channel is grey."""
    values_YXK = pixels_KYX.transpose(1, 2, 0).astype(np.float64)
    if settings.mean:
        values_YXK = values_YXK * np.array(settings.std) + np.array(settings.mean)
    if settings.rescale is not None:
        values_YXK = values_YXK / settings.rescale
    bytes_YXK = np.clip(np.rint(values_YXK), 0, 255).astype(np.uint8)
    return read_only(np.broadcast_to(bytes_YXK, (*bytes_YXK.shape[:2], 3)))
