"""The legend of a curve plot, which is also its read-out."""

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPalette, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.theme.fonts import caption_font
from explorer.theme.metrics import SPACE_1, SPACE_2, SPACE_4

_SWATCH = 14
_MOST_LINES = 3
_READING = "-0.0000e-00"
"""Room kept for a value, so that nothing moves while the pointer does."""


@dataclass(frozen=True, kw_only=True)
class LegendEntry:
    name: str
    color: str
    is_dashed: bool = False
    reading: str = ""


class CurveLegend(QWidget):
    """Swatch, name and value of each curve, in lines that wrap; entries beyond three lines are counted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries: tuple[LegendEntry, ...] = ()
        self._where = ""
        self.setFont(caption_font())
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_entries(self, entries: tuple[LegendEntry, ...], where: str) -> None:
        """`where` says which x the readings belong to."""
        n_lines = self._n_lines()
        self._entries, self._where = entries, where
        self.setAccessibleName(", ".join(f"{entry.name} {entry.reading}" for entry in entries))
        if self._n_lines() != n_lines:
            self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(0, self._n_lines() * self._line_height())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.updateGeometry()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        muted = self.palette().color(QPalette.ColorRole.PlaceholderText)
        painter.setPen(muted)
        line = self._line_height()
        painter.drawText(QRectF(0, 0, self.width(), line), Qt.AlignmentFlag.AlignRight, self._where)
        hidden = 0
        for entry, place in zip(self._entries, self._places(), strict=True):
            if place.y() >= _MOST_LINES * line:
                hidden += 1
            else:
                self._paint_entry(painter, entry, place, muted)
        if hidden:
            painter.setPen(muted)
            area = QRectF(0, (_MOST_LINES - 1) * line, self.width(), line)
            painter.drawText(area, Qt.AlignmentFlag.AlignRight, self.tr("+{n} more").format(n=hidden))
        painter.end()

    def _paint_entry(self, painter: QPainter, entry: LegendEntry, place: QPointF, muted: QColor) -> None:
        metrics = self.fontMetrics()
        middle = place.y() + metrics.height() / 2
        pen = QPen(QColor(entry.color), 2.0)
        if entry.is_dashed:
            pen.setDashPattern([2.0, 1.5])
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        painter.setPen(pen)
        painter.drawLine(QPointF(place.x(), middle), QPointF(place.x() + _SWATCH, middle))
        x = place.x() + _SWATCH + SPACE_2
        baseline = place.y() + metrics.ascent()
        painter.setPen(muted)
        painter.drawText(QPointF(x, baseline), entry.name)
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        painter.drawText(QPointF(x + metrics.horizontalAdvance(entry.name) + SPACE_2, baseline), entry.reading)

    def _places(self) -> list[QPointF]:
        """Upper left corner of each entry; the right end of the first line is kept for `where`."""
        metrics = self.fontMetrics()
        reserved = metrics.horizontalAdvance(self._where) + SPACE_4
        places: list[QPointF] = []
        x, y = 0.0, 0.0
        for entry in self._entries:
            width = _SWATCH + 2 * SPACE_2 + metrics.horizontalAdvance(entry.name) + _reading_width(metrics)
            room = self.width() - reserved
            if x > 0 and x + width > room:
                x, y = 0.0, y + self._line_height()
            places.append(QPointF(x, y))
            x += width + SPACE_2
        return places

    def _n_lines(self) -> int:
        places = self._places()
        return min(_MOST_LINES, int(places[-1].y() / self._line_height()) + 1) if places else 1

    def _line_height(self) -> int:
        return self.fontMetrics().height() + SPACE_1


def _reading_width(metrics: QFontMetrics) -> int:
    return metrics.horizontalAdvance(_READING)
