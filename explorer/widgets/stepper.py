"""A whole number from 0 that is stepped through."""

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QIntValidator, QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QToolButton, QWidget

from explorer.theme.icons import icon
from explorer.theme.metrics import SPACE_1

_STEPS = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}


class Stepper(QWidget):
    """`name < 3 >`: a name, a number that can be typed, and a button on either side."""

    value_picked = Signal(int)
    """On a change made by the user."""

    def __init__(
        self, name: str, previous: str, following: str, *, shortcuts: str, parent: QWidget | None = None
    ) -> None:
        """`previous` and `following`: tooltips of the buttons; `shortcuts` of the two."""
        super().__init__(parent)
        self._shortcuts = shortcuts
        self._value = 0
        self._last = 0
        self._validator = QIntValidator(0, 0, self)
        self._field = QLineEdit("0", self)
        self._field.setValidator(self._validator)
        self._field.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._field.setAccessibleName(name)
        self._field.editingFinished.connect(self._on_field_editing_finished)
        label = QLabel(name, self)
        label.setBuddy(self._field)
        self._back = self._button("chevron-left", previous)
        self._forth = self._button("chevron-right", following)
        self._back.clicked.connect(self._on_back_clicked)
        self._forth.clicked.connect(self._on_forth_clicked)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(label)
        layout.addSpacing(SPACE_1)
        for widget in (self._back, self._field, self._forth):
            layout.addWidget(widget)
        self.set_count(1)

    @property
    def value(self) -> int:
        return self._value

    def set_count(self, count: int) -> None:
        """Allow 0 .. count - 1; emits nothing."""
        self._last = max(0, count - 1)
        self._validator.setTop(self._last)
        tip = (
            self.tr("Type a number from 0 to {last}, or step ({keys}).") if self._last else self.tr("There is only 0.")
        )
        self._field.setToolTip(tip.format(last=self._last, keys=self._shortcuts))
        self._field.setFixedWidth(
            self.fontMetrics().horizontalAdvance("0" * max(2, len(str(self._last)))) + 4 * SPACE_1
        )
        self.set_value(self._value)

    def set_value(self, value: int) -> None:
        """Show the allowed value nearest to `value`; emits nothing."""
        self._value = min(max(0, value), self._last)
        self._field.setText(str(self._value))
        self._back.setEnabled(self._value > 0)
        self._forth.setEnabled(self._value < self._last)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _STEPS:
            self._pick(self._value + _STEPS[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def _button(self, icon_name: str, tooltip: str) -> QToolButton:
        button = QToolButton(self)
        button.setIcon(icon(icon_name))
        button.setIconSize(QSize(12, 12))
        button.setAutoRaise(True)
        button.setAutoRepeat(True)
        button.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # keys step in the field
        button.setToolTip(tooltip)
        button.setAccessibleName(tooltip)
        return button

    def _pick(self, value: int) -> None:
        before = self._value
        self.set_value(value)
        if self._value != before:
            self.value_picked.emit(self._value)

    @Slot()
    def _on_back_clicked(self) -> None:
        self._pick(self._value - 1)

    @Slot()
    def _on_forth_clicked(self) -> None:
        self._pick(self._value + 1)

    @Slot()
    def _on_field_editing_finished(self) -> None:
        self._pick(int(self._field.text()))
