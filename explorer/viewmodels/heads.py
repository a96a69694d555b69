"""All heads of a site as one mosaic."""

from __future__ import annotations

import numpy as np

from explorer.state.answers import HeadsAnswer
from explorer.state.app_state import AppState
from explorer.viewmodels.records import MosaicPicture
from explorer.viewmodels.scales import LOG_FLOOR
from explorer.viewmodels.sites import site_name


def heads_picture(answer: HeadsAnswer, state: AppState) -> MosaicPicture:
    """Thumbnails in the scale of the matrix; sink excluded means that colours end at the largest weight of the rest."""
    weights, display = answer.thumbnails, state.display
    values, levels = weights, (0.0, 1.0)
    if display.scale == "log":
        with np.errstate(divide="ignore"):
            values, levels = np.log10(weights), (LOG_FLOOR, 0.0)
    elif display.scale == "row_max":
        peaks = np.nan_to_num(weights).max(axis=-1, keepdims=True)
        values = np.divide(weights, peaks, out=np.full_like(weights, np.nan), where=peaks > 0)
    elif display.scale == "sink_excluded":
        levels = (0.0, float(np.nan_to_num(weights[..., 1:]).max(initial=0.0)) or 1.0)
    return MosaicPicture(
        thumbnails=values,
        levels=levels,
        title=site_name(answer.site),
        note=_note(answer),
        colormap=display.colormap,
    )


def _note(answer: HeadsAnswer) -> str:
    """Whether a value is a cell, or what it stands for."""
    note = "largest weight under each pixel" if max(answer.shape) > answer.thumbnails.shape[-1] else "exact cells"
    spoilt = answer.not_numbers
    return f"{note}; not a number in layer {', '.join(map(str, spoilt))}" if spoilt else note
