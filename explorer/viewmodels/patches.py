"""Where in a picture a query looks, ready to be drawn over it."""

from __future__ import annotations

import numpy as np

from explorer.state.answers import PictureAnswer
from explorer.state.app_state import AppState
from explorer.viewmodels.records import FloatArray, PatchPicture
from explorer.viewmodels.scales import LOG_FLOOR

_NAMED = 2
"""Class tokens and registers whose weights are told one by one; of more, the others are summed."""


def patch_picture(answer: PictureAnswer, state: AppState) -> PatchPicture:
    """The weights over the patches, up to the largest of them, and how much of the row lies elsewhere."""
    attention, weights = answer.attention, answer.attention.weights
    peak = float(np.nan_to_num(weights).max(initial=0.0))
    values, levels, ends, scale = weights, (0.0, peak or 1.0), ("0", f"{peak:.3g}"), "weight, linear"
    if state.display.scale == "log":
        with np.errstate(divide="ignore"):
            values, levels, ends, scale = np.log10(weights), (LOG_FLOOR, 0.0), ("≤ 0.0001", "1"), "weight, log"
    return PatchPicture(
        image=answer.seen,
        values=values,
        weights=weights,
        levels=levels,
        ends=ends,
        query=attention.query,
        place=attention.place,
        first=len(attention.before),
        asks=answer.queries == answer.keys,
        title=f"Where query {attention.query}, {answer.queries.texts[attention.query]}, looks",
        note=_shares(answer),
        scale_name=scale,
        colormap=state.display.colormap,
    )


def _shares(answer: PictureAnswer) -> str:
    """How much of the row lies on the patches, and on what stands before them."""
    before, names = answer.attention.before, answer.keys.texts
    parts = [("patches", answer.attention.weights), *zip(names[:_NAMED], before[:_NAMED], strict=False)]
    if len(before) > _NAMED:
        parts.append((f"{len(before) - _NAMED} more", before[_NAMED:]))
    return ", ".join(f"{name} {_total(weights):.4f}" for name, weights in parts)


def _total(weights: FloatArray) -> float:
    return float(np.sum(weights, dtype=np.float64))
