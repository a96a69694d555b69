"""A panel's content in its four states: empty, working, ready, error."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from explorer.theme.manager import ThemeManager


class StatePage(QStackedWidget):
    """Starts empty and silent. While a ready picture is renewed, leave it on screen and call the plot's `set_stale`."""

    action_triggered = Signal()
    """The button of the empty or error page."""
    cancel_requested = Signal()

    def __init__(self, themes: ThemeManager, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def show_content(self) -> None: ...
    def show_empty(self, text: str, action: str = "") -> None:
        """What to do, with a button when `action` names one."""

    def show_working(self, text: str) -> None:
        """First work, with nothing older to show; appears after 0.3 s."""

    def show_progress(self, fraction: float | None, text: str = "") -> None:
        """Move the progress of the working page; None: no end is known."""

    def show_error(
        self, what: str, why: str = "", next_step: str = "", details: str = "", action: str = ""
    ) -> None: ...
