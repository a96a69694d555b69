"""An axis of numbers in the look of the application."""

import math
from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF

from explorer.plots.setup import pg
from explorer.theme.colors import Theme
from explorer.theme.fonts import caption_font
from explorer.theme.metrics import SPACE_1, SPACE_2
from explorer.viewmodels.sizes import number_text
from explorer.viewmodels.ticks import format_ticks, nice_step, nice_ticks

_TICK_GAP = {"left": 28, "bottom": 48}
"""Pixels from tick to tick."""
_FEWEST_TICKS = 2
"""Written even where they are nearer: one number alone does not give a scale."""
_OVERHANG = 24
"""Pixels that a number at an end of the axis may stand out by: pyqtgraph leaves out those that stand out further."""
_MOST_DECADES = 3
"""A log axis of more decades is marked at powers of ten only, a shorter one at 1, 2 and 5 times them."""


class ValueAxis(pg.AxisItem):
    """Muted numbers without prefixes, a faint grid, one hairline."""

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self._gap = _TICK_GAP[side]
        self.enableAutoSIPrefix(False)
        self.setStyle(
            tickFont=caption_font(),
            tickLength=0,
            tickTextOffset=SPACE_2 if side == "left" else SPACE_1,
            hideOverlappingLabels=False,
        )

    def set_title(self, title: str) -> None:
        if title != self.labelText:
            self.setLabel(title)

    def set_log(self, is_log: bool) -> None:
        """Write powers of ten: the axis then counts in logarithms."""
        self.setLogMode(False, is_log)  # pyright: ignore[reportArgumentType]  (annotated as tuples in pyqtgraph 0.14)

    def set_theme(self, theme: Theme) -> None:
        self.setPen(pg.mkPen(theme.border))
        self.setTickPen(pg.mkPen(theme.grid))
        self.setTextPen(theme.text_muted)
        self.labelStyle = {"color": theme.text_muted, "font-size": f"{caption_font().pointSizeF()}pt"}
        self.setLabel(self.labelText)

    def labelString(self) -> str:  # noqa: N802
        """The title as pyqtgraph has it, cut where the axis is too short for it."""
        length = self.size().height() if self.orientation == "left" else self.size().width()
        title = QFontMetricsF(caption_font()).elidedText(self.labelText, Qt.TextElideMode.ElideRight, length)
        style = ";".join(f"{name}: {value}" for name, value in self.labelStyle.items())
        return f"<span style='{style}'>{escape(title)}</span>"

    def resizeEvent(self, ev: object = None) -> None:
        if self.label is not None:
            self.label.setHtml(self.labelString())
        super().resizeEvent(ev)
        if self.orientation == "bottom" and self.label is not None:
            self.label.moveBy(0, -SPACE_1)  # pyqtgraph lets it hang over the edge

    # -- what pyqtgraph asks for ---------------------------------------------------------------------------------------

    def boundingRect(self) -> QRectF:  # noqa: N802
        """With the numbers at the ends, which pyqtgraph does not count in where there is a grid."""
        if self.orientation == "left":
            return super().boundingRect().adjusted(0, -_OVERHANG, 0, _OVERHANG)
        return super().boundingRect().adjusted(-_OVERHANG, 0, _OVERHANG, 0)

    def tickSpacing(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, float]]:
        span = abs(maxVal - minVal)
        if not span > 0.0:
            return []
        return [(nice_step(span, self._n_parts(minVal, maxVal, size)), 0.0)]

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        if not self.logMode:
            return super().tickValues(minVal, maxVal, size)
        low, high = sorted((minVal, maxVal))
        decades = range(math.floor(low), math.ceil(high) + 1)
        factors = (1, 2, 5) if len(decades) - 1 <= _MOST_DECADES else (1,)
        marks = [decade + math.log10(factor) for decade in decades for factor in factors]
        marks = [mark for mark in marks if low <= mark <= high]
        if len(marks) < _FEWEST_TICKS and high > low:
            values = nice_ticks(10.0**low, 10.0**high, self._n_parts(10.0**low, 10.0**high, size))
            marks = [math.log10(value) for value in values]
        return [(1.0, marks)]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        if self.logMode:
            return [number_text(10.0**value) for value in values]
        return format_ticks([value * scale for value in values])

    def _n_parts(self, low: float, high: float, size: float) -> int:
        """Into how many parts `size` pixels from `low` to `high` are divided."""
        n_parts = max(1, int(size / self._gap))
        while len(nice_ticks(low, high, n_parts)) < _FEWEST_TICKS:
            n_parts += 1
        return n_parts
