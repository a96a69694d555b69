"""The colour bar: which colour is which number, on which scale, and how the cells without a number look."""

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QWidget

from explorer.theme.colors import Theme
from explorer.theme.fonts import caption_font
from explorer.theme.metrics import SPACE_1, SPACE_2, SPACE_3
from explorer.viewmodels.ticks import format_ticks, nice_ticks

BAR_WIDTH = 12.0
_TICK = 4.0
_TICK_GAP = 44
Sign = tuple[str, QPixmap]
"""A word and the pattern it explains."""


class ColorBar(QWidget):
    """Bar, ticks and scale name side by side; signs for patterns below."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._image = QImage()
        self._levels = (0.0, 1.0)
        self._given_ticks: tuple[tuple[float, str], ...] = ()
        self._scale_name = ""
        self._signs: list[Sign] = []
        self._font = caption_font()
        self._metrics = QFontMetricsF(self._font)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def set_content(
        self,
        table: NDArray[np.uint8],
        levels: tuple[float, float],
        scale_name: str,
        ticks: tuple[tuple[float, str], ...],
        signs: list[Sign],
    ) -> None:
        """`table`: [256, 4] RGBA from the lower to the upper level."""
        column = np.ascontiguousarray(table[::-1])
        self._image = QImage(column.data, 1, len(column), 4, QImage.Format.Format_RGBA8888).copy()
        self._levels, self._scale_name, self._given_ticks, self._signs = levels, scale_name, ticks, signs
        self.update()

    def overhang(self) -> float:
        """Half a line above and below the bar, so that the numbers at its ends stand level with them."""
        return self._metrics.height() / 2

    def width_needed(self) -> float:
        """The same for every range, so that nothing moves when numbers change."""
        longest = max((text for _, text in self._given_ticks), key=len, default="")
        numbers = max(self._metrics.horizontalAdvance("-0.00"), self._metrics.horizontalAdvance(longest))
        beside = BAR_WIDTH + _TICK + SPACE_1 + numbers + SPACE_1 + self._metrics.height()
        below = max((self._metrics.horizontalAdvance(word) for word, _ in self._signs), default=0.0)
        return max(beside, BAR_WIDTH + SPACE_2 + below)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(self._font)
        painter.translate(0, self.overhang())
        height = self.height() - 2 * self.overhang() - self._signs_height()
        painter.drawImage(QRectF(0, 0, BAR_WIDTH, height), self._image)
        self._paint_ticks(painter, height)
        self._paint_name(painter, height)
        self._paint_signs(painter, height + SPACE_3)
        painter.end()

    def _signs_height(self) -> float:
        return len(self._signs) * (BAR_WIDTH + SPACE_2) + SPACE_1 if self._signs else 0.0

    def _ticks(self, height: float) -> list[tuple[float, str]]:
        if self._given_ticks:
            return list(self._given_ticks)
        # Of one number alone nobody can tell a scale.
        most = max(1, int(height / _TICK_GAP))
        values = next(
            (found for n in range(most, most + 4) if len(found := nice_ticks(*self._levels, max_count=n)) > 1), []
        )
        return list(zip(values, format_ticks(values), strict=True))

    def _paint_ticks(self, painter: QPainter, height: float) -> None:
        low, high = self._levels
        for value, text in self._ticks(height):
            if not low <= value <= high or high == low:
                continue
            y = height * (high - value) / (high - low)
            painter.setPen(QColor(self._theme.border))
            painter.drawLine(int(BAR_WIDTH), round(y), int(BAR_WIDTH + _TICK), round(y))
            painter.setPen(QColor(self._theme.text_muted))
            left = BAR_WIDTH + _TICK + SPACE_1
            painter.drawText(QRectF(left, y - self.overhang(), self.width(), self._metrics.height()), text)

    def _paint_name(self, painter: QPainter, height: float) -> None:
        painter.save()
        painter.setPen(QColor(self._theme.text_muted))
        painter.translate(self.width() - self._metrics.height(), height)
        painter.rotate(-90)
        text = self._metrics.elidedText(self._scale_name, Qt.TextElideMode.ElideRight, height)
        painter.drawText(QRectF(0, 0, height, self._metrics.height()), Qt.AlignmentFlag.AlignCenter, text)
        painter.restore()

    def _paint_signs(self, painter: QPainter, top: float) -> None:
        for word, pattern in self._signs:
            box = QRectF(0.5, top + 0.5, BAR_WIDTH - 1, BAR_WIDTH - 1)
            painter.drawTiledPixmap(box, pattern)
            painter.setPen(QColor(self._theme.border))
            painter.drawRect(box)
            painter.setPen(QColor(self._theme.text_muted))
            middle = QRectF(BAR_WIDTH + SPACE_2, top - SPACE_1, self.width(), BAR_WIDTH + 2 * SPACE_1)
            painter.drawText(middle, Qt.AlignmentFlag.AlignVCenter, word)
            top += BAR_WIDTH + SPACE_2
