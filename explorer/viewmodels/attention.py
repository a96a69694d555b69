"""One head's attention as the picture that the matrix panel draws and the figure prints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core_model.results import HeatmapView
from explorer.state.answers import MatrixAnswer
from explorer.state.app_state import AppState
from explorer.viewmodels.records import BoolArray, FloatArray, HeatmapPicture
from explorer.viewmodels.scales import Scaled, scaled
from explorer.viewmodels.sites import site_name
from explorer.viewmodels.token_names import token_names

_PEAKS = "largest"
_SUM_TOLERANCE = 1e-3
_SELF_TITLES = "query (row)", "key (column)"


def matrix_picture(answer: MatrixAnswer, state: AppState) -> HeatmapPicture:
    """The whole matrix, exact or pooled, in the scale and colours that the state asks for."""
    view, display = answer.view, state.display
    drawn = scaled(view.values, answer.row_peaks, display.scale, n_first_keys=_n_first_keys(view))
    missing, missing_name = _missing(view, drawn)
    given, given_title = _given(answer)
    row_title, col_title = _SELF_TITLES
    if view.site == "decoder.cross":
        row_title, col_title = (
            f"query: {answer.queries.unit} the decoder reads",
            f"key: {answer.keys.unit} the encoder reads",
        )
    return HeatmapPicture(
        values=drawn.values,
        shape=(len(answer.queries), len(answer.keys)),
        rows=view.rows,
        cols=view.cols,
        cells=view.cells,
        reduce=view.reduce,
        levels=drawn.levels,
        ticks=drawn.ticks,
        title=f"{site_name(view.site)}, layer {view.layer} head {view.head}",
        scale_name=drawn.name,
        note=_note(view),
        colormap=display.colormap,
        masked=view.masked if view.masked.any() else None,
        missing=missing,
        missing_name=missing_name,
        weights=view.values,
        row_labels=token_names(answer.queries),
        col_labels=token_names(answer.keys),
        row_title=row_title,
        col_title=col_title,
        given=given,
        given_title=given_title,
        received=_received(view),
        received_title="received",
        axes=(answer.queries, answer.keys),
        identity=(view.site, view.layer, view.head, display.scale, answer.queries, answer.keys),
    )


def matrix_tile(answer: MatrixAnswer, whole: HeatmapPicture, state: AppState) -> HeatmapPicture:
    """A closer part to lay over the whole, or all of it pooled over its sample, in the whole's own scale."""
    view = answer.view
    drawn = scaled(view.values, answer.row_peaks, state.display.scale, n_first_keys=_n_first_keys(view))
    missing, missing_name = _missing(view, drawn)
    return replace(
        whole,
        values=drawn.values,
        rows=view.rows,
        cols=view.cols,
        cells=view.cells,
        reduce=view.reduce,
        note=_note(view),
        masked=view.masked if view.masked.any() else None,
        missing=missing,
        missing_name=missing_name,
        weights=view.values,
        given=_known(answer.row_peaks),
        given_title=_PEAKS,
        received=None,
    )


def _missing(view: HeatmapView, drawn: Scaled) -> tuple[BoolArray | None, str]:
    """The cells without a colour, and why: the scale leaves them out, or the model computed no number there."""
    no_number = np.isnan(view.values)
    if not no_number.any():
        return drawn.left_out, "left out"
    if drawn.left_out is None:
        return no_number, "not a number"
    return no_number | drawn.left_out, "left out or not a number"


def _known(values: FloatArray) -> FloatArray | None:
    """A strip beside the matrix, if all of it is known."""
    return None if np.isnan(values).any() else values


def _n_first_keys(view: HeatmapView) -> int:
    """How many keys the first column of pixels stands for, where that is the first of the matrix; else 0."""
    if view.cols[0] != 0:
        return 0
    return 1 if view.reduce == "sample" else view.cells[1]


def _note(view: HeatmapView) -> str:
    """Whether a value is a cell, or what it is the maximum or mean of."""
    if view.exact:
        return "exact cells"
    height, width = view.cells
    if view.reduce == "sample":
        return f"a sample: one cell of each {height} x {width}, the others are being computed"
    word = {"max": "maximum", "mean": "mean"}[view.reduce]
    return f"{word} of up to {height} x {width} cells; zoom in for exact cells"


def _given(answer: MatrixAnswer) -> tuple[FloatArray | None, str]:
    """What each query gives in sum where that is not 1 for all of them, else its largest weight, with its name."""
    view = answer.view
    sums = view.values.sum(axis=1)
    is_whole = view.exact and view.cols == (0, len(answer.keys))
    if is_whole and not np.allclose(sums[~view.masked.all(axis=1)], 1.0, atol=_SUM_TOLERANCE):
        return _known(sums), "given"
    return _known(answer.row_peaks), _PEAKS


def _received(view: HeatmapView) -> FloatArray | None:
    """Mean weight of each key over the queries that may see it; only from exact cells of the whole matrix."""
    if not view.exact:
        return None
    n_seeing = np.maximum(1, (~view.masked).sum(axis=0))
    return _known((view.values.sum(axis=0) / n_seeing).astype(np.float32))
