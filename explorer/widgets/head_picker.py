"""Pick a layer and a head, one step at a time or by number."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget


class HeadPicker(QWidget):
    """`layer < 1 > head < 2 >`, counted from 0."""

    head_picked = Signal(int, int)
    """(layer, head), on a change made by the user."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_sizes(self, n_layers: int, n_heads: int) -> None: ...
    def set_head(self, layer: int, head: int) -> None:
        """Show a head; emits nothing."""
