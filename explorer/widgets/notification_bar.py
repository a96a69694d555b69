"""Messages above the work, newest first, with details behind a disclosure."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer.theme.manager import ThemeManager


class NotificationBar(QWidget):
    """Takes no room while it has nothing to say."""

    count_changed = Signal(int)

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def show_message(self, level: str, text: str, details: str = "") -> None:
        """`level` is "info", "warning" or "error"; `details` may be a traceback."""

    def dismiss(self) -> None:
        """Remove the message on screen; the one before it returns."""
