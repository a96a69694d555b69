"""A number that is stepped through."""

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QAbstractSpinBox, QHBoxLayout, QLabel, QSpinBox, QToolButton, QWidget

from explorer.theme.icons import icon
from explorer.theme.metrics import SPACE_1


class Stepper(QWidget):
    """`name < 3 >`: a name, a number that can be typed, and a button on either side."""

    value_picked = Signal(int)
    """On a change made by the user."""

    def __init__(self, name: str, previous: str, following: str, parent: QWidget | None = None) -> None:
        """`previous` and `following`: tooltips of the buttons."""
        super().__init__(parent)
        self._box = QSpinBox(self)
        self._box.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        self._box.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._box.setKeyboardTracking(False)
        self._box.setAccessibleName(name)
        self._box.valueChanged.connect(self._on_box_value_changed)
        label = QLabel(name, self)
        label.setBuddy(self._box)
        self._back = self._button("chevron-left", previous)
        self._forth = self._button("chevron-right", following)
        self._back.clicked.connect(self._box.stepDown)
        self._forth.clicked.connect(self._box.stepUp)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(label)
        layout.addSpacing(SPACE_1)
        for widget in (self._back, self._box, self._forth):
            layout.addWidget(widget)
        self.set_count(1)

    @property
    def value(self) -> int:
        return self._box.value()

    def set_count(self, count: int) -> None:
        """Allow 0 .. count - 1."""
        self._box.blockSignals(True)
        self._box.setRange(0, max(0, count - 1))
        self._box.blockSignals(False)
        self._box.setToolTip(self.tr("Type a number from 0 to {last}.").format(last=max(0, count - 1)))
        self._update_buttons()

    def set_value(self, value: int) -> None:
        """Show a value; emits nothing."""
        self._box.blockSignals(True)
        self._box.setValue(value)
        self._box.blockSignals(False)
        self._update_buttons()

    def _button(self, icon_name: str, tooltip: str) -> QToolButton:
        button = QToolButton(self)
        button.setIcon(icon(icon_name))
        button.setIconSize(QSize(12, 12))
        button.setAutoRaise(True)
        button.setAutoRepeat(True)
        button.setToolTip(tooltip)
        button.setAccessibleName(tooltip)
        return button

    def _update_buttons(self) -> None:
        self._back.setEnabled(self._box.value() > self._box.minimum())
        self._forth.setEnabled(self._box.value() < self._box.maximum())

    @Slot(int)
    def _on_box_value_changed(self, value: int) -> None:
        self._update_buttons()
        self.value_picked.emit(value)
