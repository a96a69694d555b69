"""Details that are shown when somebody asks for them."""

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import QPlainTextEdit, QToolButton, QVBoxLayout, QWidget

from explorer.theme.fonts import token_font
from explorer.theme.icons import icon
from explorer.theme.metrics import SPACE_1

_LOWEST, _HIGHEST = 64, 140


class Disclosure(QWidget):
    """A button with a chevron, and below it text that can be selected and copied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._button = QToolButton(self)
        self._button.setText(self.tr("Details"))
        self._button.setToolTip(self.tr("Show or hide the technical details."))
        self._button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._button.setIconSize(QSize(12, 12))
        self._button.setAutoRaise(True)
        self._button.setCheckable(True)
        self._button.toggled.connect(self._on_button_toggled)
        self._text = QPlainTextEdit(self)
        self._text.setReadOnly(True)
        self._text.setFont(token_font(0.92))
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._text.setMinimumHeight(_LOWEST)
        self._text.setMaximumHeight(_HIGHEST)
        self._text.setAccessibleName(self.tr("Details"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_1)
        layout.addWidget(self._button, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self._text)
        self._on_button_toggled(False)

    def set_text(self, text: str) -> None:
        """Replace the details and close; an empty text hides the whole widget."""
        self._text.setPlainText(text)
        self._button.setChecked(False)
        self.setVisible(bool(text))

    @Slot(bool)
    def _on_button_toggled(self, is_open: bool) -> None:
        self._button.setIcon(icon("chevron-down" if is_open else "chevron-right"))
        self._text.setVisible(is_open)
