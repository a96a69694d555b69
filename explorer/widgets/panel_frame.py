"""What every panel has in common: a title row with its few controls, and the content below."""

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget


class PanelFrame(QWidget):
    """A 28 px title row; rare controls sit in one "..." menu, which appears with its first action."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_title(self, title: str) -> None: ...
    def set_content(self, widget: QWidget) -> None: ...
    def add_control(self, widget: QWidget) -> None:
        """Add to the right of the title, in reading order."""

    def add_menu_action(self, action: QAction) -> None: ...
