"""Pick a layer and a head, one step at a time or by number."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from explorer.theme.metrics import SPACE_3
from explorer.widgets.stepper import Stepper


class HeadPicker(QWidget):
    """`layer < 1 > head < 2 >`, counted from 0."""

    head_picked = Signal(int, int)
    """(layer, head), on a change made by the user."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._layer = Stepper(
            self.tr("layer"), self.tr("Previous layer ([)"), self.tr("Next layer (])"), shortcuts="[ ]", parent=self
        )
        self._head = Stepper(
            self.tr("head"), self.tr("Previous head (,)"), self.tr("Next head (.)"), shortcuts=", .", parent=self
        )
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_3)
        for stepper in (self._layer, self._head):
            layout.addWidget(stepper)
            stepper.value_picked.connect(self._on_stepper_value_picked)

    def set_sizes(self, n_layers: int, n_heads: int) -> None:
        self._layer.set_count(n_layers)
        self._head.set_count(n_heads)

    def set_head(self, layer: int, head: int) -> None:
        """Show a head; emits nothing."""
        self._layer.set_value(layer)
        self._head.set_value(head)

    @Slot()
    def _on_stepper_value_picked(self) -> None:
        self.head_picked.emit(self._layer.value, self._head.value)
