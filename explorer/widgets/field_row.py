"""One line of a form: name, editor, unit, and what is wrong with the value."""

from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QAbstractSpinBox, QGridLayout, QLabel, QSpinBox, QWidget

from explorer.theme.fonts import caption_font
from explorer.theme.metrics import SPACE_1, SPACE_2
from explorer.widgets.elided_label import ElidedLabel

_LABEL_WIDTH = 112


class FieldRow(QWidget):
    """The message has its room reserved, so nothing moves when it appears."""

    def __init__(
        self, label: str, editor: QWidget, *, unit: str = "", tooltip: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._editor = editor
        self._error = ""
        self._hint = ""
        name = QLabel(label, self)
        name.setBuddy(editor)
        name.setMinimumWidth(_LABEL_WIDTH)
        name.setToolTip(tooltip)
        editor.setToolTip(tooltip)
        editor.setAccessibleName(label)
        if isinstance(editor, QAbstractSpinBox):
            editor.lineEdit().setTextMargins(SPACE_1, 0, 0, 0)  # a stylesheet's padding does not reach it
        self._message = ElidedLabel(parent=self)
        self._message.setFont(caption_font())
        self._grid = layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setHorizontalSpacing(SPACE_2)
        layout.setVerticalSpacing(1)
        layout.addWidget(name, 0, 0)
        layout.addWidget(editor, 0, 1)
        if unit:
            assert isinstance(editor, QSpinBox), label
            editor.setSuffix(f" {unit}")
        layout.addWidget(self._message, 1, 1)
        layout.setColumnStretch(1, 1)

    @property
    def editor(self) -> QWidget:
        return self._editor

    @property
    def error(self) -> str:
        return self._error

    def set_error(self, message: str) -> None:
        """Show what is wrong; "" clears it."""
        self._error = message
        self._show_message()

    def set_hint(self, message: str) -> None:
        """A muted remark in the same place, for example "2.1 million parameters"; an error covers it."""
        self._hint = message
        self._show_message()

    def _show_message(self) -> None:
        role = QPalette.ColorRole.BrightText if self._error else QPalette.ColorRole.PlaceholderText
        self._message.setForegroundRole(role)
        column = 0 if self._error else 1  # a whole sentence needs the whole row
        self._grid.addWidget(self._message, 1, column, 1, 2 - column)
        self._message.set_text(f"\u26a0 {self._error}" if self._error else self._hint)
        self._editor.setAccessibleDescription(self._error or self._hint)
