"""What came of an action, beside the button: a mark and a few words, with room kept for them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from explorer.theme.icons import icon
from explorer.theme.metrics import ICON, SPACE_2

_LINES = 4
_ICONS = {"ok": "ok", "neutral": "info", "warning": "warning", "error": "error"}


class Remark(QWidget):
    """Never colour alone: each kind has its icon."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon = QLabel(self)
        self._icon.setFixedWidth(ICON)
        self._text = QLabel(self, wordWrap=True)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._text.setMinimumHeight(_LINES * self.fontMetrics().lineSpacing())
        for label in (self._icon, self._text):
            label.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_2)
        layout.addWidget(self._icon)
        layout.addWidget(self._text, 1)

    @property
    def text(self) -> str:
        return self._text.text()

    def say(self, kind: str, text: str) -> None:
        """`kind` is "ok", "neutral", "warning" or "error"."""
        self._icon.setPixmap(icon(_ICONS[kind]).pixmap(ICON, ICON))
        self._text.setText(text)
        self.setAccessibleName(text)

    def clear(self) -> None:
        self._icon.clear()
        self._text.clear()
        self.setAccessibleName("")
