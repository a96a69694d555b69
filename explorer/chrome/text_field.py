"""A line of text that may be very long."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLineEdit, QWidget

from explorer.theme.icons import icon

_EDITABLE = 20_000
"""Characters up to which a text is edited in a line; a longer one, from a file, is shown by its beginning."""
_BEGINNING = 200


class TextField(QLineEdit):
    """Edits a text; one beyond the limit is shown by its beginning and can only be cleared."""

    edited = Signal()
    finished = Signal()
    """Return was pressed, the focus went elsewhere, or the text was cleared."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._long_text = ""
        self._clear = QAction(icon("close"), self.tr("Clear the text."), self)
        self._clear.triggered.connect(self._on_clear_triggered)
        self.addAction(self._clear, QLineEdit.ActionPosition.TrailingPosition)
        self._clear.setVisible(False)
        self.textChanged.connect(self._on_text_changed)
        self.textEdited.connect(self.edited)
        self.editingFinished.connect(self.finished)

    @property
    def full_text(self) -> str:
        """The whole text, however much of it is shown."""
        return self._long_text or self.text()

    def set_text(self, text: str) -> None:
        """Show a text, without the signals of typing."""
        if text == self.full_text:
            return
        is_long = len(text) > _EDITABLE
        self._long_text = text if is_long else ""
        self.setReadOnly(is_long)
        self.setText(f"{text[:_BEGINNING]}… ({len(text):,} characters)" if is_long else text)
        self.setCursorPosition(0)

    @Slot(str)
    def _on_text_changed(self, text: str) -> None:
        self._clear.setVisible(bool(text))

    @Slot()
    def _on_clear_triggered(self) -> None:
        self.set_text("")
        self.finished.emit()
