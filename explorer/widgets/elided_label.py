"""A label that gives way: cut with an ellipsis, whole in the tooltip."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QSizePolicy, QWidget


class ElidedLabel(QWidget):
    """One line of text in the palette colour of `role`, for example PlaceholderText for a muted one.

    A new text lays the window out anew, unless the label's width policy is Ignored.
    """

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        *,
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        role: QPalette.ColorRole = QPalette.ColorRole.WindowText,
    ) -> None:
        super().__init__(parent)
        self._text = ""
        self._mode = mode
        self.setForegroundRole(role)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.set_text(text)

    def text(self) -> str:
        return self._text

    def set_text(self, text: str) -> None:
        if text == self._text:
            return
        self._text = text
        self.setAccessibleName(text)
        self._update_tooltip()
        if self.sizePolicy().horizontalPolicy() is not QSizePolicy.Policy.Ignored:
            self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance(self._text) + 1, self.fontMetrics().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.fontMetrics().height())

    def resizeEvent(self, event: object) -> None:
        self._update_tooltip()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, self._shown())
        painter.end()

    def _shown(self) -> str:
        return self.fontMetrics().elidedText(self._text, self._mode, self.width())

    def _update_tooltip(self) -> None:
        self.setToolTip(self._text if self._shown() != self._text else "")
