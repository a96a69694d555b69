"""A figure on its sheet: as large as there is room, never larger than it is."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QPixmap
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.theme.fonts import token_font
from explorer.theme.metrics import SPACE_4


class Paper(QWidget):
    """Shows a picture, or a text in its place."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._pixmap = QPixmap()
        self._text = ""
        self._is_code = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(320, 240)

    @property
    def pixmap(self) -> QPixmap:
        """The picture shown; null when there is none."""
        return self._pixmap

    @property
    def text(self) -> str:
        return self._text

    def show_pixmap(self, pixmap: QPixmap) -> None:
        self._pixmap, self._text = pixmap, ""
        self.setAccessibleName(self.tr("Preview of the figure"))
        self.update()

    def show_text(self, text: str, *, is_code: bool = False) -> None:
        """Words in the middle, or the lines of a file on a sheet, as many as there is room for."""
        self._pixmap, self._text, self._is_code = QPixmap(), text, is_code
        self.setAccessibleName(text)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(560, 520)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        room = self.rect().adjusted(SPACE_4, SPACE_4, -SPACE_4, -SPACE_4)
        if self._pixmap.isNull() and self._is_code:
            painter.fillRect(self.rect(), self.palette().color(QPalette.ColorRole.Base))
            painter.setFont(token_font(0.92))
            painter.setPen(self.palette().color(QPalette.ColorRole.Text))
            painter.drawText(room, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft, self._text)
        elif self._pixmap.isNull():
            painter.setPen(self.palette().color(QPalette.ColorRole.PlaceholderText))
            painter.drawText(room, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._text)
        else:
            ratio = self.devicePixelRatioF()
            size = self._pixmap.size().scaled(self.size() * ratio, Qt.AspectRatioMode.KeepAspectRatio)
            shown = self._pixmap.scaled(
                size.boundedTo(self._pixmap.size()),
                Qt.AspectRatioMode.KeepAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
            shown.setDevicePixelRatio(ratio)
            place = QRect(0, 0, round(shown.width() / ratio), round(shown.height() / ratio))
            place.moveCenter(self.rect().center())
            painter.drawPixmap(place, shown)
        painter.end()
