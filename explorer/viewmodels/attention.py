"""One head's attention as the picture that the matrix panel draws and the figure prints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core_model.results import HeatmapView
from explorer.state.answers import MatrixAnswer
from explorer.state.app_state import AppState
from explorer.viewmodels.records import FloatArray, HeatmapPicture
from explorer.viewmodels.scales import scaled
from explorer.viewmodels.sites import site_name

_CROSS_TITLES = "query: token the decoder reads", "key: token the encoder reads"
_PEAKS = "largest"
_SUM_TOLERANCE = 1e-3
_SELF_TITLES = "query (row)", "key (column)"


def matrix_picture(answer: MatrixAnswer, state: AppState) -> HeatmapPicture:
    """The whole matrix, exact or pooled, in the scale and colours that the state asks for."""
    view, display = answer.view, state.display
    drawn = scaled(view.values, answer.row_peaks, display.scale, n_first_keys=_n_first_keys(view))
    given, given_title = _given(answer)
    row_title, col_title = _CROSS_TITLES if view.site == "decoder.cross" else _SELF_TITLES
    return HeatmapPicture(
        values=drawn.values,
        shape=(len(answer.queries), len(answer.keys)),
        rows=view.rows,
        cols=view.cols,
        levels=drawn.levels,
        ticks=drawn.ticks,
        title=f"{site_name(view.site)}, layer {view.layer} head {view.head}",
        scale_name=drawn.name,
        note=_note(view),
        colormap=display.colormap,
        masked=view.masked if view.masked.any() else None,
        missing=drawn.left_out,
        missing_name="left out",
        weights=view.values,
        row_labels=answer.queries.texts,
        col_labels=answer.keys.texts,
        row_title=row_title,
        col_title=col_title,
        given=given,
        given_title=given_title,
        received=_received(view),
        received_title="received",
        identity=(view.site, view.layer, view.head, display.scale, answer.queries, answer.keys),
    )


def matrix_tile(answer: MatrixAnswer, whole: HeatmapPicture, state: AppState) -> HeatmapPicture:
    """A closer part to lay over the whole, or all of it pooled over its sample, in the whole's own scale."""
    view = answer.view
    drawn = scaled(view.values, answer.row_peaks, state.display.scale, n_first_keys=_n_first_keys(view))
    return replace(
        whole,
        values=drawn.values,
        rows=view.rows,
        cols=view.cols,
        note=_note(view),
        masked=view.masked if view.masked.any() else None,
        missing=drawn.left_out,
        weights=view.values,
        given=answer.row_peaks,
        given_title=_PEAKS,
        received=None,
    )


def _n_first_keys(view: HeatmapView) -> int:
    """How many keys the first column of pixels stands for, where that is the first of the matrix; else 0."""
    if view.cols[0] != 0:
        return 0
    return 1 if view.reduce == "sample" else -(-(view.cols[1] - view.cols[0]) // view.shape[1])


def _note(view: HeatmapView) -> str:
    """Whether a pixel is a cell, or what it is the maximum or mean of."""
    if view.exact:
        return "exact cells"
    height, width = (
        -(-(stop - start) // n) for (start, stop), n in zip((view.rows, view.cols), view.shape, strict=True)
    )
    if view.reduce == "sample":
        return f"a sample: one cell of each {height} x {width}, the others are being computed"
    word = {"max": "maximum", "mean": "mean"}[view.reduce]
    return f"{word} of up to {height} x {width} cells a pixel; zoom in for exact cells"


def _given(answer: MatrixAnswer) -> tuple[FloatArray, str]:
    """What each query gives in sum where that is not 1 for all of them, else its largest weight, with its name."""
    view = answer.view
    sums = view.values.sum(axis=1)
    is_whole = view.exact and view.cols == (0, len(answer.keys))
    if is_whole and not np.allclose(sums[~view.masked.all(axis=1)], 1.0, atol=_SUM_TOLERANCE):
        return sums, "given"
    return answer.row_peaks, _PEAKS


def _received(view: HeatmapView) -> FloatArray | None:
    """Mean weight of each key over the queries that may see it; only from exact cells of the whole matrix."""
    if not view.exact:
        return None
    n_seeing = np.maximum(1, (~view.masked).sum(axis=0))
    return (view.values.sum(axis=0) / n_seeing).astype(np.float32)
