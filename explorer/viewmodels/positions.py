"""How a layer knows order, as curves and a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from core_model.results import PositionEncoding
from explorer.state.app_state import AppState
from explorer.theme.token_text import Name
from explorer.viewmodels.records import CurvePicture, HeatmapPicture, Series

N_CURVES: Final = 6
"""Dimensions shown before any are chosen."""
MOST_CURVES: Final = 8

_DISTANCE: Final = "distance, key minus query"
_VALUE_NAMES: Final = {"rotary": "cosine or sine", "disentangled": "value of the vector"}

_KINDS: Final = {
    "sinusoidal": ("Sinusoidal positions", "Fixed sines and cosines, added to the embeddings of the tokens."),
    "learned": ("Learned positions", "One trained vector a position, added to the embeddings of the tokens."),
    "rotary": ("Rotary positions", "Queries and keys are turned, pair by pair: the cosine and sine of each angle."),
    "alibi": ("ALiBi", "A penalty on scores that grows in a straight line with distance, one slope a head."),
    "bucketed": ("Relative position bias", "A trained bonus on scores for each range of distances, one a head."),
    "grid": (
        "Relative position bias in two dimensions",
        "A trained bonus on scores for each step of rows and columns between patches, one a head; here along a row.",
    ),
    "disentangled": (
        "Disentangled positions",
        "A trained vector for each distance: in every head, queries meet its key and keys meet its query.",
    ),
    "none": ("No positional encoding", "This model adds nothing for position: only its mask tells it about order."),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class PositionsPicture:
    """Curves and matrix of one encoding; both None for a model without any. `dimensions` are those with a curve."""

    title: str
    explanation: str
    curves: CurvePicture | None = None
    matrix: HeatmapPicture | None = None
    dimensions: tuple[int, ...] = ()
    n_dimensions: int = 0


def positions_look(state: AppState) -> object:
    """What the picture reads of the state."""
    return state.display, state.position_curves


def positions_picture(encoding: PositionEncoding, state: AppState) -> PositionsPicture:
    """The encoding as the model computes it, with the curves that the state asks for."""
    title, explanation = _KINDS[encoding.kind]
    where = (
        f"{encoding.stack}, layer {encoding.layer}"
        if encoding.kind in ("alibi", "bucketed", "grid")
        else encoding.stack
    )
    title = f"{title}, {where}"
    if encoding.bias is not None and encoding.distances is not None:
        return _bias_picture(encoding.bias, encoding.distances, title, explanation)
    if encoding.table is None:
        return PositionsPicture(title=title, explanation=explanation)
    table = encoding.table
    chosen = tuple(one for one in state.position_curves if one < table.shape[1]) or first_dimensions(table.shape[1])
    if encoding.distances is None:
        rows, row_title = np.arange(len(table)), "position"
    else:
        rows, row_title = encoding.distances, _DISTANCE
    series = tuple(
        Series(
            name=f"dimension {encoding.dimensions[one]}",
            x=rows.astype(np.float64),
            y=table[:, one].astype(np.float64),
            role=f"series_{1 + number}",
        )
        for number, one in enumerate(chosen[:MOST_CURVES])
    )
    value_name = _VALUE_NAMES.get(encoding.kind, "value added")
    return PositionsPicture(
        title=title,
        explanation=explanation,
        curves=CurvePicture(series=series, title=title, x_title=row_title, y_title=value_name),
        matrix=_matrix(
            table,
            title=f"Every dimension at every {row_title.split(',')[0]}",
            row_title=row_title,
            row_first=int(rows[0]),
            col_title="dimension",
            col_labels=encoding.dimensions,
            value_name=value_name,
        ),
        dimensions=chosen[:MOST_CURVES],
        n_dimensions=table.shape[1],
    )


def first_dimensions(n_dimensions: int) -> tuple[int, ...]:
    """The dimensions shown before any are chosen: evenly spread, the first and the fast ones among them."""
    return tuple(sorted({int(one) for one in np.linspace(0, n_dimensions - 1, min(N_CURVES, n_dimensions))}))


def _bias_picture(bias: np.ndarray, distances: np.ndarray, title: str, explanation: str) -> PositionsPicture:
    bias = bias + 0.0  # no head adds -0
    is_causal = bool((distances <= 0).all())
    x = distances.astype(np.float64)
    series = tuple(
        Series(name=f"head {head}", x=x, y=bias[head].astype(np.float64), role=f"series_{1 + head}")
        for head in range(min(len(bias), MOST_CURVES))
    )
    return PositionsPicture(
        title=title,
        explanation=explanation,
        curves=CurvePicture(
            series=series,
            title=title,
            x_title=_DISTANCE,
            x_unit="tokens",
            y_title="added to the score",
        ),
        matrix=_matrix(
            bias[:, ::-1] if is_causal else bias,
            title="Every head at every distance",
            row_title="head",
            col_title="distance back" if is_causal else _DISTANCE,
            col_first=0 if is_causal else int(distances[0]),
            value_name="added to the score",
        ),
    )


def _matrix(
    values: np.ndarray,
    *,
    title: str,
    row_title: str,
    col_title: str,
    value_name: str,
    col_labels: tuple[str, ...] = (),
    row_first: int = 0,
    col_first: int = 0,
) -> HeatmapPicture:
    bound = float(np.abs(values).max()) or 1.0
    return HeatmapPicture(
        values=values,
        shape=values.shape,
        rows=(0, values.shape[0]),
        cols=(0, values.shape[1]),
        levels=(-bound, bound),
        title=title,
        scale_name=value_name,
        colormap="diverging",
        col_labels=tuple(map(Name, col_labels)),
        row_first=row_first,
        col_first=col_first,
        row_title=row_title,
        col_title=col_title,
        row_role="text",
        col_role="text",
        square_cells=False,
        identity=(title, values.shape),
    )


def toggled(dimensions: tuple[int, ...], dimension: int) -> tuple[int, ...]:
    """The dimensions with one more or one less; the oldest gives way where there would be too many."""
    if dimension in dimensions:
        return tuple(one for one in dimensions if one != dimension)
    return (*dimensions, dimension)[-MOST_CURVES:]
