"""What every panel has in common: a title row with its few controls, and the content below."""

from PySide6.QtCore import QSize
from PySide6.QtGui import QAction, QPalette
from PySide6.QtWidgets import QHBoxLayout, QMenu, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from explorer.theme.fonts import title_font
from explorer.theme.icons import icon
from explorer.theme.metrics import ICON, SPACE_1, SPACE_2, SPACE_3, TITLE_ROW
from explorer.widgets.elided_label import ElidedLabel

_LEAST_TITLE = 64
"""Pixels that a title keeps beside its controls: a word."""


class PanelFrame(QWidget):
    """A 28 px title row; rare controls sit in one "..." menu, which appears with its first action."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setBackgroundRole(QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self._title = ElidedLabel(title, self)
        self._title.setFont(title_font())
        self._title.setMinimumWidth(min(self._title.sizeHint().width(), _LEAST_TITLE))
        self._title.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._menu = QMenu(self)
        self._more = QToolButton(self)
        self._more.setIcon(icon("more"))
        self._more.setIconSize(QSize(ICON, ICON))
        self._more.setAutoRaise(True)
        self._more.setMenu(self._menu)
        self._more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._more.setToolTip(self.tr("More about this panel."))
        self._more.setAccessibleName(self.tr("More"))
        self._more.hide()
        self._row = QHBoxLayout()
        self._row.setContentsMargins(SPACE_3, SPACE_1, SPACE_2, 0)
        self._row.setSpacing(SPACE_2)
        self._row.addWidget(self._title, 1)
        self._row.addWidget(self._more)
        head = QWidget(self)
        head.setLayout(self._row)
        head.setFixedHeight(TITLE_ROW + SPACE_1)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._layout.addWidget(head)
        self._content: QWidget | None = None
        self.setAccessibleName(title)

    def set_title(self, title: str) -> None:
        self._title.set_text(title)
        self.setAccessibleName(title)

    def set_content(self, widget: QWidget) -> None:
        """Fill the panel with a widget that keeps its own margins; what was there before is deleted."""
        if self._content is not None:
            self._layout.removeWidget(self._content)
            self._content.deleteLater()
        self._content = widget
        self._layout.addWidget(widget, 1)

    def add_control(self, widget: QWidget) -> None:
        """Add to the right of the title, in reading order."""
        self._row.insertWidget(self._row.count() - 1, widget)

    def add_menu_action(self, action: QAction) -> None:
        self._menu.addAction(action)
        self._more.show()
