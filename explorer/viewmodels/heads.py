"""All heads of a site as one mosaic."""

from __future__ import annotations

from explorer.state.answers import HeadsAnswer
from explorer.state.app_state import AppState
from explorer.viewmodels.records import MosaicPicture
from explorer.viewmodels.scales import scaled_thumbnails
from explorer.viewmodels.sites import site_name


def heads_picture(answer: HeadsAnswer, state: AppState) -> MosaicPicture:
    """Thumbnails in the scale of the matrix."""
    values, levels = scaled_thumbnails(answer.thumbnails, state.display.scale)
    return MosaicPicture(
        thumbnails=values,
        levels=levels,
        title=site_name(answer.site),
        note=_note(answer),
        colormap=state.display.colormap,
    )


def _note(answer: HeadsAnswer) -> str:
    """Whether a value is a cell, or what it stands for."""
    note = "largest weight under each pixel" if max(answer.shape) > answer.thumbnails.shape[-1] else "exact cells"
    spoilt = answer.not_numbers
    return f"{note}; not a number in layer {', '.join(map(str, spoilt))}" if spoilt else note
