"""Bars along an edge of a matrix: what each row gives, what each column receives."""

import math
from typing import Literal

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from explorer.theme.colors import Theme
from explorer.theme.fonts import caption_font
from explorer.theme.metrics import SPACE_2
from explorer.viewmodels.records import FloatArray, Range, Span, reach_of

THICKNESS = 28.0
_STRENGTH = 0.55
"""Opacity of the bars: the matrix stays louder."""


class MarginalStrip(QWidget):
    """Bars from zero to the largest value, growing away from the matrix.

    `lead` pixels of its length lie beside the labels of the matrix and hold the title and the largest value.
    """

    def __init__(self, theme: Theme, side: Literal["right", "bottom"], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_right = side == "right"
        self._role = "text"
        self._theme = theme
        self._values: FloatArray = np.zeros(1, dtype=np.float32)
        self._extent: Span = (0, 1)
        self._per_bar = 1
        self._span: Range = (0.0, 1.0)
        self._title = ""
        self._lead = 0.0
        self._font = caption_font()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def set_content(self, values: FloatArray, extent: Span, per_bar: int, title: str, role: str) -> None:
        """`values` over the indices of `extent`, each over `per_bar` of them and the last over what is left."""
        self._values, self._extent, self._per_bar, self._title, self._role = values, extent, per_bar, title, role
        self.update()

    def set_span(self, span: Range) -> None:
        self._span = span
        self.update()

    def set_lead(self, lead: float) -> None:
        self._lead = lead
        self.update()

    def lead_needed(self) -> float:
        """Length of the title and of the largest value."""
        metrics = QFontMetricsF(self._font)
        return max(metrics.horizontalAdvance(line) for line in self._lines()) + SPACE_2 + 1

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        largest = float(np.nanmax(self._values, initial=0.0))
        self._paint_title(painter)
        if largest > 0.0:
            painter.setPen(Qt.PenStyle.NoPen)
            color = QColor(self._theme[self._role])
            color.setAlphaF(_STRENGTH)
            painter.setBrush(color)
            painter.drawRects(self._bars(largest))
        painter.end()

    def _lines(self) -> tuple[str, str]:
        return self._title, f"0 \u2013 {float(np.nanmax(self._values, initial=0.0)):.3g}"

    def _bars(self, largest: float) -> list[QRectF]:
        """Visible bars; neighbours touch, and thin lines stay between wide ones."""
        length = (self.height() if self._is_right else self.width()) - self._lead
        scale = length / (self._span[1] - self._span[0])
        values, edges = self._pooled(scale * self.devicePixelRatioF())
        starts = self._lead + (np.maximum(edges[:-1], self._span[0]) - self._span[0]) * scale
        stops = self._lead + (np.minimum(edges[1:], self._span[1]) - self._span[0]) * scale
        gap = 1.0 if scale * (edges[1] - edges[0]) >= 4.0 else 0.0
        heights = np.nan_to_num(values) / largest * THICKNESS
        bars = zip(starts.tolist(), stops.tolist(), heights.tolist(), strict=True)
        if self._is_right:
            return [QRectF(0, a, h, b - a - gap) for a, b, h in bars if b > a]
        return [QRectF(a, 0, b - a - gap, h) for a, b, h in bars if b > a]

    def _pooled(self, pixels_per_index: float) -> tuple[FloatArray, FloatArray]:
        """Bars of at least a pixel, each the largest of those it stands for, and their edges."""
        step = max(1, math.ceil(1.0 / (self._per_bar * pixels_per_index)))
        padded = np.pad(self._values, (0, -len(self._values) % step), constant_values=np.nan)
        n = len(padded) // step
        edges = np.linspace(*reach_of(self._extent, n, step * self._per_bar, 1.0 / pixels_per_index), n + 1)
        return np.fmax.reduce(padded.reshape(n, step), axis=1), np.minimum(edges, self._extent[1])

    def _paint_title(self, painter: QPainter) -> None:
        painter.save()
        painter.setFont(self._font)
        painter.setPen(QColor(self._theme.text_muted))
        text = "\n".join(self._lines())
        height = 2 * QFontMetricsF(self._font).height()
        if self._is_right:
            painter.translate(0, self._lead - SPACE_2)
            painter.rotate(-90)
            painter.drawText(QRectF(0, 0, self._lead, height), Qt.AlignmentFlag.AlignLeft, text)
        else:
            painter.drawText(QRectF(0, 0, self._lead - SPACE_2, height), Qt.AlignmentFlag.AlignRight, text)
        painter.restore()
