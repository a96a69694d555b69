"""The tokens of a text as chips, in lines that wrap or in one row that scrolls."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from explorer.theme.manager import ThemeManager


class TokenStrip(QAbstractScrollArea):
    """One painted widget for any number of tokens."""

    token_hovered = Signal(int)
    hover_left = Signal()
    token_clicked = Signal(int)

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None, *, wraps: bool = True) -> None:
        super().__init__(parent)

    def set_tokens(self, tokens: Sequence[str]) -> None: ...
    def set_marked(self, *, query: int | None = None, key: int | None = None) -> None:
        """Colour the query's and the key's chip and bring the query into view."""
