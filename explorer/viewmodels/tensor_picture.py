"""One tensor: its facts, its histogram, its picture, its singular values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from core_model.pieces import as_matrix
from core_model.results import HeadPart, Pooling, TensorStatistics, TensorView
from core_model.wording import shown
from explorer.state.app_state import AppState
from explorer.state.tensors import HeadCut, SpectrumAnswer, Subject, TensorAnswer
from explorer.viewmodels.facts import FactRow, FactSection, FactSheet
from explorer.viewmodels.records import CurvePicture, HeatmapPicture, Series
from explorer.viewmodels.sizes import bytes_text, grouped, number_text
from explorer.viewmodels.tensor_list import shape_text

PARTS: Final[dict[HeadPart, tuple[str, str]]] = {
    "query": ("Query map", "W_Q of the head [head size, width]: what it asks of a token."),
    "key": ("Key map", "W_K of the head [head size, width]: what a token offers to be found by."),
    "value": ("Value map", "W_V of the head [head size, width]: what it takes from a token."),
    "output": ("Output map", "W_O of the head [width, head size]: what it writes of it."),
    "qk": ("QK circuit", "W_Q transposed times W_K [width, width]: which token looks at which (Elhage et al. 2021)."),
    "ov": ("OV circuit", "W_O times W_V [width, width]: what a token that is looked at becomes (Elhage et al. 2021)."),
}
"""Title and meaning of each."""
POOLINGS: Final[dict[Pooling, tuple[str, str]]] = {
    "extreme": ("Extreme", "A pixel shows the number of its block that is farthest from 0, with its sign."),
    "mean": ("Mean", "A pixel shows the mean of its block."),
}
_LOG_FROM: Final = 10
"""Ratio of the fullest bin to the emptiest from which a histogram has a log scale."""
_AXES: Final[dict[HeadPart, tuple[str, str]]] = {
    "query": ("head dimension", "stream, read"),
    "key": ("head dimension", "stream, read"),
    "value": ("head dimension", "stream, read"),
    "output": ("stream, written", "head dimension"),
    "qk": ("stream at the query", "stream at the key"),
    "ov": ("stream, written", "stream, read"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorPicture:
    """What is shown of one tensor; without a finite number there is no histogram, without elements no matrix."""

    subject: Subject
    facts: FactSheet
    histogram: CurvePicture | None
    matrix: HeatmapPicture | None


def tensor_picture(answer: TensorAnswer, state: AppState) -> TensorPicture:
    """The whole of a tensor."""
    return TensorPicture(
        subject=answer.subject,
        facts=FactSheet(sections=(_numbers(answer.statistics), _identity(answer))),
        histogram=_histogram(answer.statistics),
        matrix=None if answer.view is None else _matrix(answer, answer.view),
    )


def tensor_part(view: TensorView, whole: TensorPicture, state: AppState) -> TensorPicture:
    """The same with a closer part of its matrix, in the whole's own scale."""
    assert whole.matrix is not None
    part = replace(
        whole.matrix,
        values=view.values,
        missing=_marks(view),
        rows=view.rows,
        cols=view.cols,
        cells=view.cells,
        note=_note(view, whole.matrix.levels[1]),
    )
    return replace(whole, matrix=part)


def spectrum_picture(answer: SpectrumAnswer, state: AppState) -> CurvePicture:
    """Singular values by their rank, on a log scale where they differ much; none that cannot be told from 0."""
    values = answer.values
    shown = np.where(values > 1e-7 * values.max(initial=0.0), values, np.nan)
    is_log = bool(np.nanmax(shown, initial=0.0) > _LOG_FROM * np.nanmin(shown, initial=np.inf))
    return CurvePicture(
        series=(Series(name="singular value", x=np.arange(1, len(values) + 1, dtype=np.float64), y=shown),),
        title=f"Singular values of {subject_name(answer.subject)}",
        x_title="rank",
        y_title="singular value",
        log_y=is_log,
    )


def subject_name(subject: Subject) -> str:
    """A tensor's name on one line, or head and part in words."""
    if isinstance(subject, HeadCut):
        return f"{PARTS[subject.part][0]}, {subject.site} L{subject.layer} H{subject.head}"
    return shown(subject)


def cell_text(picture: HeatmapPicture, row: int, col: int) -> str:
    """One cell's place and number; empty outside the picture."""
    place = picture.index_of(row, col)
    if place is None:
        return ""
    is_missing = picture.missing is not None and bool(picture.missing[place])
    value = picture.missing_name if is_missing else number_text(float(picture.values[place]))
    kind = "" if picture.is_exact else f" ({picture.reduce} of its block)"
    return f"{picture.row_title} {row}, {picture.col_title} {col}: {value}{kind}"


def _identity(answer: TensorAnswer) -> FactSection:
    info, subject = answer.info, answer.subject
    rows = [FactRow(name="shape", value=shape_text(answer.shape))]
    if info is not None:
        rows += [
            FactRow(name="stored", value=f"{bytes_text(info.n_bytes)} as {info.dtype}"),
            FactRow(name="our name", value=info.site or "none", mark="" if info.site else "unknown"),
            FactRow(name="file", value=info.file.name, tooltip=str(info.file)),
        ]
    elif isinstance(subject, HeadCut):
        rows += [
            FactRow(name="meaning", value=PARTS[subject.part][1]),
            FactRow(name="left out", value="biases, norms, positions and the scale of scores"),
        ]
    return FactSection(title=subject_name(subject), rows=tuple(rows))


def _numbers(numbers: TensorStatistics) -> FactSection:
    rows = [
        FactRow(name="count", value=grouped(str(numbers.n_elements))),
        FactRow(name="least", value=number_text(numbers.minimum)),
        FactRow(name="greatest", value=number_text(numbers.maximum)),
        FactRow(name="mean", value=number_text(numbers.mean)),
        FactRow(name="spread", value=number_text(numbers.std), tooltip="Standard deviation of the numbers."),
        FactRow(name="norm", value=number_text(numbers.norm), tooltip="Square root of the sum of squares (Frobenius)."),
        FactRow(name="zeros", value=_share(numbers.n_zero, numbers.n_elements)),
    ]
    for name, count in (("NaN", numbers.n_nan), ("infinite", numbers.n_infinite)):
        if count:
            rows.append(FactRow(name=name, value=_share(count, numbers.n_elements), mark="error"))
    return FactSection(title="Numbers", rows=tuple(rows))


def _share(count: int, total: int) -> str:
    if count == 0:
        return "none"
    return f"{grouped(str(count))} ({100 * count / total:.3g} %)"


def _histogram(numbers: TensorStatistics) -> CurvePicture | None:
    """Steps over the bins, on a log scale where they differ much; empty bins are gaps there."""
    if not numbers.n_finite:
        return None
    filled = numbers.counts[numbers.counts > 0]
    is_log = bool(filled.max() > _LOG_FROM * filled.min())
    counts = np.where(numbers.counts > 0, numbers.counts, np.nan) if is_log else numbers.counts.astype(np.float64)
    return CurvePicture(
        series=(Series(name="numbers", x=np.repeat(numbers.edges, 2)[1:-1], y=np.repeat(counts, 2)),),
        title=f"Histogram, {len(numbers.counts)} equal bins" if len(numbers.counts) > 1 else "Histogram, one bin",
        x_title="value",
        y_title="numbers in the bin",
        log_y=is_log,
    )


def _matrix(answer: TensorAnswer, view: TensorView) -> HeatmapPicture:
    bound = float(np.abs(view.values).max()) or 1.0
    subject = answer.subject
    row_title, col_title = _AXES[subject.part] if isinstance(subject, HeadCut) else ("row", "column")
    folded = "" if len(answer.shape) in (2, 1, 0) else f", as {shape_text(as_matrix(answer.shape))}"
    return HeatmapPicture(
        values=view.values,
        missing=_marks(view),
        missing_name="not finite",
        shape=view.shape,
        rows=view.rows,
        cols=view.cols,
        cells=view.cells,
        reduce=view.pooling,
        levels=(-bound, bound),
        title=f"{subject_name(subject)}{folded}",
        scale_name="value",
        note=_note(view, bound),
        colormap="diverging",
        row_title=row_title,
        col_title=col_title,
        row_role="text",
        col_role="text",
        identity=(subject, view.pooling),
    )


def _marks(view: TensorView) -> np.ndarray | None:
    return view.missing if view.missing.any() else None


def _note(view: TensorView, bound: float) -> str:
    if view.exact:
        beyond = int((np.abs(view.values) > bound).sum())
        return "exact" if not beyond else f"exact; {beyond} beyond the colours, which end at {number_text(bound)}"
    height, width = view.cells
    return f"{POOLINGS[view.pooling][0].lower()} of up to {height} \u00d7 {width}"
