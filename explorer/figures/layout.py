"""Where everything stands on the page: pure geometry in points (1/72 inch) from the top left corner.

The width is the one asked for; the height follows from the matrix, whose cells stay square while both its sides can be
seen. Edges of the matrix lie on whole pixels of the chosen resolution, so that a PNG has no half-covered cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from explorer.figures.files import ExportError
from explorer.figures.spec import FigureSpec
from explorer.theme.token_text import Name
from explorer.viewmodels.records import Span
from explorer.viewmodels.ticks import format_ticks, nice_ticks

POINTS_PER_MM = 72 / 25.4
MARGIN = 3.0
MAX_MATRIX_HEIGHT = 225 * POINTS_PER_MM  # what a page of a journal holds with its caption
MIN_MATRIX_SIDE = 24.0
MAX_LABEL_SHARE = 0.2
"""Of the page's width, for the tokens of an axis; longer ones are cut."""
LEAST_LABEL_SIZE = 5.0
"""Points: tokens are set smaller, down to this, before any is left out."""
BAR_WIDTH = 6.0
MAX_BAR_HEIGHT = 300.0
LONG_MATRIX_BAR = 200.0
"""Height of the colour bar beside a matrix that is higher than MAX_BAR_HEIGHT."""
CAPTION_SCALE = 0.86
LINE = 1.25
"""From one line of text to the next, in font sizes."""
_LABEL_PITCH = 1.15
_SPACE = 0.6
"""Between labels side by side, in font sizes."""
_MAX_SNAP_LOSS = 0.06


class Typesetter(Protocol):
    """What the layout needs to know about the fonts that will be used."""

    def width(self, text: str, size: float) -> float:
        """Points that the text takes at a font size."""
        ...

    def printable(self, text: str) -> str:
        """The text with characters that no font has spelled as codes."""
        ...


@dataclass(frozen=True, kw_only=True)
class Box:
    """A rectangle on the page."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height


@dataclass(frozen=True, kw_only=True)
class AxisLabels:
    """The labels of one axis that there is room for."""

    labels: tuple[tuple[int, str], ...]
    """(index of the token, text)."""
    step: int
    """Every how many tokens there is one."""
    size: float
    """Of their font."""
    width: float
    """Points of the widest."""
    turned: bool = False
    """By 90 degrees, to be read from bottom to top."""

    @property
    def height(self) -> float:
        """Points they need above their axis."""
        return self.width if self.turned else self.size


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A page, ready to be drawn."""

    width: float
    height: float
    font_size: float
    matrix: Box
    rows: AxisLabels
    cols: AxisLabels
    row_title_x: float
    """Centre of the rotated title of the rows."""
    col_title_y: float
    """Top of the title of the columns."""
    bar: Box
    bar_ticks: tuple[tuple[float, str], ...]
    bar_title_x: float
    legend: tuple[str, ...]
    """Kinds of cell to explain: "masked", "not computed"."""
    legend_y: float
    caption: tuple[str, ...]
    caption_y: float


def lay_out(spec: FigureSpec, fonts: Typesetter) -> Layout:
    """Place everything; ExportError when the width leaves no room for the matrix."""
    size, unit = spec.options.font_size, 72 / spec.options.dpi
    gap, line = 0.5 * size, LINE * size
    width = spec.options.width_mm * POINTS_PER_MM
    bar_ticks = tuple((value, fonts.printable(text)) for value, text in _bar_ticks(spec))
    tick_width = max((fonts.width(text, size) for _, text in bar_ticks), default=0.0)
    before = MARGIN + line + 2 * gap
    after = (
        2 * unit + 2 * gap + BAR_WIDTH + tick_width + gap + line + MARGIN
    )  # matrix and bar move to the next whole pixel
    rows, cols, side, height = _fit_matrix(spec, fonts, width - before - after)

    top = _snap_up(MARGIN + line + 2 * gap + cols.height, unit)
    matrix = Box(left=_snap_up(before + rows.width, unit), top=top, width=side, height=height)
    title_length = fonts.width(spec.picture.scale_name, size)
    bar_height = _snap_up(max(title_length, height if height <= MAX_BAR_HEIGHT else LONG_MATRIX_BAR), unit)
    bar = Box(left=_snap_up(matrix.right + 2 * gap, unit), top=top, width=BAR_WIDTH, height=bar_height)
    legend = _legend(spec)
    legend_y = max(matrix.bottom, bar.bottom) + 1.5 * gap
    caption_y = legend_y + (line + gap if legend else 0.0)
    caption = _wrap(fonts, spec.caption, CAPTION_SCALE * size, width - 2 * MARGIN) if spec.options.caption else ()
    bottom = caption_y + len(caption) * CAPTION_SCALE * line
    return Layout(
        width=width,
        height=_snap_up(bottom + MARGIN, unit),
        font_size=size,
        matrix=matrix,
        rows=rows,
        cols=cols,
        row_title_x=MARGIN + line / 2,
        col_title_y=MARGIN,
        bar=bar,
        bar_ticks=bar_ticks,
        bar_title_x=bar.right + gap + tick_width + gap + line / 2,
        legend=legend,
        legend_y=legend_y,
        caption=caption,
        caption_y=caption_y,
    )


def _fit_matrix(spec: FigureSpec, fonts: Typesetter, room: float) -> tuple[AxisLabels, AxisLabels, float, float]:
    """Labels of both axes, width and height of the matrix, given the room for row labels and matrix together."""
    n_rows = spec.picture.rows[1] - spec.picture.rows[0]
    for rows in _row_choices(spec, fonts):  # labels of rows take room from the matrix: try the densest
        if room - rows.width < MIN_MATRIX_SIDE:
            raise ExportError(
                f"The width is {spec.options.width_mm:g} mm: too narrow for this matrix at "
                f"{spec.options.font_size:g} pt; choose a wider figure, a smaller font, or no token labels."
            )
        width, height = _matrix_size(spec, room - rows.width)
        needed = (
            _LABEL_PITCH * rows.size if spec.row_texts else rows.width + _SPACE * rows.size
        )  # indices as in columns
        if rows.step * height / n_rows >= needed or rows.step >= n_rows:
            return rows, _col_labels(spec, fonts, width), width, height
    raise AssertionError("the choices have no end")


def _row_choices(spec: FigureSpec, fonts: Typesetter) -> Iterator[AxisLabels]:
    texts = spec.row_texts
    for step, size in _densities(spec.options.font_size, may_shrink=bool(texts)):
        yield _axis_labels(texts, spec.picture.rows, step, fonts, size, _label_limit(spec))


def _col_labels(spec: FigureSpec, fonts: Typesetter, width: float) -> AxisLabels:
    """Upright where every label fits over its columns, tokens turned by 90 degrees where not; indices are thinned."""
    texts, n_cols = spec.col_texts, spec.picture.cols[1] - spec.picture.cols[0]
    for step, size in _densities(spec.options.font_size, may_shrink=bool(texts)):
        labels = _axis_labels(texts, spec.picture.cols, step, fonts, size, _label_limit(spec))
        across = step * width / n_cols
        if labels.width + _SPACE * size <= across or step >= n_cols:
            return labels
        if texts and across >= _LABEL_PITCH * size:
            return replace(labels, turned=True)
    raise AssertionError("the choices have no end")


def _label_limit(spec: FigureSpec) -> float:
    return MAX_LABEL_SHARE * spec.options.width_mm * POINTS_PER_MM


def _matrix_size(spec: FigureSpec, room: float) -> tuple[float, float]:
    """Width and height in points, whole pixels each and, where that costs little, the same number for every cell."""
    picture, unit = spec.picture, 72 / spec.options.dpi
    n_rows, n_cols = (stop - start for start, stop in (picture.rows, picture.cols))
    ratio = n_rows / n_cols if picture.square_cells else 0.6
    width = _snap(max(MIN_MATRIX_SIDE, min(room, MAX_MATRIX_HEIGHT / ratio)), picture.values.shape[1], unit)
    height = _snap(max(MIN_MATRIX_SIDE, min(width * ratio, MAX_MATRIX_HEIGHT)), picture.values.shape[0], unit)
    return width, height


def _snap(length: float, n_cells: int, unit: float) -> float:
    pixels = int(length / unit + 1e-6)
    left_over = pixels % n_cells
    return (pixels - left_over if left_over <= _MAX_SNAP_LOSS * pixels else pixels) * unit


def _snap_up(length: float, unit: float) -> float:
    return math.ceil(length / unit - 1e-6) * unit


def _densities(size: float, *, may_shrink: bool) -> Iterator[tuple[int, float]]:
    """(every how many tokens a label, its font size): smaller letters before fewer labels, then 2, 5, 10, 20, 50 ..."""
    yield 1, size
    if may_shrink:
        n_smaller = max(0, math.floor(2 * (size - LEAST_LABEL_SIZE)))
        yield from ((1, size - 0.5 * number) for number in range(1, n_smaller + 1))
    for power in itertools.count():
        yield from ((step * 10**power, size) for step in (2, 5, 10))


def _axis_labels(
    texts: tuple[str, ...], span: Span, step: int, fonts: Typesetter, size: float, limit: float
) -> AxisLabels:
    """Every `step`-th label, no wider than `limit`, with its index in front where tokens are left out.

    The name of a patch or a frame says where it is by itself.
    """
    start, stop = span
    is_numbered = not texts or (step > 1 and not isinstance(texts[-1], Name))
    labels: list[tuple[int, str]] = []
    for index in range(-(-start // step) * step, stop, step):
        token = fonts.printable(texts[index - start]) if texts else ""
        number = str(index) if is_numbered else ""
        labels.append((index, _cut(f"{number} {token}".strip(), size, limit, fonts)))
    widest = max((fonts.width(text, size) for _, text in labels), default=0.0)
    return AxisLabels(labels=tuple(labels), step=step, size=size, width=widest)


def _cut(text: str, size: float, limit: float, fonts: Typesetter) -> str:
    """The text, or as much of its beginning as `limit` holds, with an ellipsis."""
    if fonts.width(text, size) <= limit:
        return text
    kept = text
    while kept and fonts.width(kept + "…", size) > limit:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def _wrap(fonts: Typesetter, text: str, size: float, limit: float) -> tuple[str, ...]:
    """Lines no wider than `limit`, broken at spaces; a word that is wider is cut."""
    lines: list[str] = []
    for word in fonts.printable(text).split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and fonts.width(longer, size) <= limit:
            lines[-1] = longer
        else:
            lines.append(_cut(word, size, limit, fonts))
    return tuple(lines)


def _legend(spec: FigureSpec) -> tuple[str, ...]:
    masked, missing = hidden_cells(spec)
    return tuple(name for name, cells in (("masked", masked), (spec.picture.missing_name, missing)) if cells.any())


def hidden_cells(spec: FigureSpec) -> tuple[np.ndarray, np.ndarray]:
    """(masked, not computed), each [r, c]: cells that are no number on the colour scale."""
    picture = spec.picture
    none = np.zeros(picture.values.shape, dtype=bool)
    masked = none if picture.masked is None else picture.masked
    missing = np.isnan(picture.values) | (none if picture.missing is None else picture.missing)
    return masked, missing & ~masked


def _bar_ticks(spec: FigureSpec) -> tuple[tuple[float, str], ...]:
    low, high = spec.picture.levels
    if spec.picture.ticks:
        return tuple((value, text) for value, text in spec.picture.ticks if low <= value <= high)
    values = nice_ticks(low, high, 5)
    return tuple(zip(values, format_ticks(values), strict=True))
