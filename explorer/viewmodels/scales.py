"""Colour scales of attention weights: what each shows, and its values, ends and ticks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from explorer.state.app_state import ScaleName
from explorer.viewmodels.records import BoolArray, FloatArray

LOG_FLOOR: Final = -4.0
"""Power of ten at the lower end of the log scale; weights below it have its colour, and its tick says so."""
_LOG_TICKS: Final = ((0.0, "1"), (-1.0, "0.1"), (-2.0, "0.01"), (-3.0, "0.001"), (-4.0, "≤ 0.0001"))


@dataclass(frozen=True, kw_only=True)
class ScaleLabel:
    """What people call a scale and what it does, in one sentence."""

    title: str
    meaning: str


SCALE_LABELS: dict[ScaleName, ScaleLabel] = {
    "linear": ScaleLabel(title="Linear", meaning="Weights as they are, from 0 to 1."),
    "log": ScaleLabel(title="Logarithmic", meaning="Powers of ten from 0.0001 to 1, so that small weights show."),
    "row_max": ScaleLabel(
        title="Row maximum", meaning="Each row divided by its largest weight, so that every query's choice shows."
    ),
    "sink_excluded": ScaleLabel(
        title="Sink excluded",
        meaning="The first key, on which many heads rest, is left out; colours end at the largest weight of the rest.",
    ),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaled:
    """Weights [r, c] in a drawn scale. `left_out` is true where the scale leaves a cell out."""

    values: FloatArray
    levels: tuple[float, float]
    ticks: tuple[tuple[float, str], ...]
    name: str
    left_out: BoolArray | None = None


def scaled(weights: FloatArray, row_peaks: FloatArray, scale: ScaleName, *, n_first_keys: int = 1) -> Scaled:
    """Weights [r, c] as `scale` draws them. `row_peaks` [r] is the largest weight of each whole row.

    `n_first_keys`: how many keys the first column of pixels stands for, the first key among them; 0: it is elsewhere.
    """
    if scale == "log":
        values = np.full_like(weights, -np.inf)
        np.log10(weights, out=values, where=weights > 0)
        return Scaled(values=values, levels=(LOG_FLOOR, 0.0), ticks=_LOG_TICKS, name="attention weight, log")
    if scale == "row_max":
        shares = np.divide(weights, row_peaks[:, None], out=np.zeros_like(weights), where=row_peaks[:, None] > 0)
        return Scaled(values=shares, levels=(0.0, 1.0), ticks=(), name="share of the row's largest weight")
    if scale == "sink_excluded":
        left_out = np.zeros(weights.shape, dtype=np.bool_)
        left_out[:, : min(n_first_keys, 1)] = True
        peak = float(np.nan_to_num(weights[~left_out]).max(initial=0.0)) or 1.0
        return Scaled(
            values=weights,
            levels=(0.0, peak),
            ticks=(),
            name=f"attention weight, {_keys(n_first_keys)} left out",
            left_out=left_out if n_first_keys else None,
        )
    top = max(1.0, float(np.nan_to_num(weights).max(initial=0.0)))
    return Scaled(values=weights, levels=(0.0, top), ticks=(), name="attention weight, linear")


def scaled_thumbnails(weights: FloatArray, scale: ScaleName) -> tuple[FloatArray, tuple[float, float]]:
    """Weights [layers, heads, r, c] of all heads, NaN where masked, as `scale` draws them, and the ends of the colours.

    Sink excluded means here that colours end at the largest weight of the rest.
    """
    if scale == "log":
        with np.errstate(divide="ignore"):
            return np.log10(weights), (LOG_FLOOR, 0.0)
    if scale == "row_max":
        peaks = np.nan_to_num(weights).max(axis=-1, keepdims=True)
        return np.divide(weights, peaks, out=np.full_like(weights, np.nan), where=peaks > 0), (0.0, 1.0)
    if scale == "sink_excluded":
        return weights, (0.0, float(np.nan_to_num(weights[..., 1:]).max(initial=0.0)) or 1.0)
    return weights, (0.0, 1.0)


def _keys(n_first: int) -> str:
    return "key 0" if n_first <= 1 else f"keys 0 to {n_first - 1}"
