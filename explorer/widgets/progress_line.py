"""Progress of one piece of work: a thin bar, a few words, and a way to cancel."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget


class ProgressLine(QWidget):
    """Its room is reserved; it shows 0.3 s after `start`, so that quick work does not flicker."""

    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def start(self, text: str) -> None: ...
    def set_progress(self, fraction: float | None, text: str = "") -> None:
        """`fraction` from 0 to 1; None: no end is known. An empty text keeps the words on screen."""

    def finish(self) -> None: ...
