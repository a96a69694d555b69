"""The look of a picture whose successor is being computed: dimmed at once, spoken of when it takes long."""

from PySide6.QtCore import QRect, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QWidget

from explorer.theme.fonts import caption_font
from explorer.theme.metrics import PATIENCE_MS, RADIUS, SPACE_1, SPACE_2

STALE_OPACITY = 0.35
_DIM_AFTER_MS = 100
"""An answer that comes sooner does not make the picture blink."""


class StaleNote(QWidget):
    """A few words at the upper edge of a plot, and the signal by which the plot dims."""

    dimmed = Signal(bool)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._plot, self._place = parent, QRect()
        self._text = self.tr("computing\u2026")
        self._dim_timer = _timer(self, _DIM_AFTER_MS)
        self._dim_timer.timeout.connect(self._on_dim_timer_timeout)
        self._note_timer = _timer(self, PATIENCE_MS)
        self._note_timer.timeout.connect(self._on_note_timer_timeout)
        self.setFont(caption_font())
        self.setAccessibleName(self._text)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def set_place(self, place: QRect) -> None:
        """The part of the plot over whose upper edge the words stand; all of it by default."""
        self._place = place

    def set_stale(self, is_stale: bool) -> None:
        if is_stale:
            if not self._dim_timer.isActive() and not self._note_timer.isActive() and self.isHidden():
                self._dim_timer.start()
                self._note_timer.start()
            return
        self._dim_timer.stop()
        self._note_timer.stop()
        self.hide()
        self.dimmed.emit(False)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette = self.palette()
        painter.setPen(palette.color(QPalette.ColorRole.Mid))
        painter.setBrush(palette.color(QPalette.ColorRole.Button))
        painter.drawRoundedRect(self.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5), RADIUS, RADIUS)
        painter.setPen(palette.color(QPalette.ColorRole.WindowText))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self._text)
        painter.end()

    @Slot()
    def _on_dim_timer_timeout(self) -> None:
        self.dimmed.emit(True)

    @Slot()
    def _on_note_timer_timeout(self) -> None:
        metrics = self.fontMetrics()
        self.resize(metrics.horizontalAdvance(self._text) + 4 * SPACE_2, metrics.height() + 2 * SPACE_1)
        place = self._plot.rect() if self._place.isEmpty() else self._place
        self.move(max(0, place.center().x() - self.width() // 2), place.top() + SPACE_2)
        self.show()
        self.raise_()


def _timer(parent: QWidget, milliseconds: int) -> QTimer:
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.setInterval(milliseconds)
    return timer
