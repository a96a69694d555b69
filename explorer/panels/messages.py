"""What the program has said since it started, with details."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QPlainTextEdit, QSplitter, QToolButton, QVBoxLayout, QWidget

from explorer.panels.panel import Panel
from explorer.state.app_state import AppState, Notice
from explorer.theme.fonts import token_font
from explorer.theme.icons import icon
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import ICON
from explorer.widgets.state_page import StatePage

_ROLES = {"info": "text_muted", "warning": "warning", "error": "error"}


class MessagesPanel(Panel):
    """Newest first; the details of the chosen one, if any, below the list."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._themes = themes
        self._notices: tuple[Notice, ...] = ()
        self._list = QListWidget(self)
        self._list.setWordWrap(True)
        self._list.setResizeMode(QListWidget.ResizeMode.Adjust)
        self._list.setTextElideMode(Qt.TextElideMode.ElideNone)
        self._list.setIconSize(QSize(ICON, ICON))
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.currentRowChanged.connect(self._on_list_current_row_changed)
        self._details = QPlainTextEdit(self, readOnly=True)
        self._details.hide()
        self._details.setFont(token_font())
        self._copy = QToolButton()
        self._copy.setIcon(icon("copy"))
        self._copy.setToolTip(self.tr("Copy the message with its details."))
        self._copy.clicked.connect(self._on_copy_clicked)
        self._copy.setEnabled(False)
        splitter = QSplitter(Qt.Orientation.Vertical, self)
        splitter.addWidget(self._list)
        splitter.addWidget(self._details)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._page = StatePage(themes, splitter, self)
        self._page.show_empty(
            self.tr("Nothing has been said yet. Warnings, errors and what came of longer work stay here.")
        )
        layout.addWidget(self._page)
        themes.theme_changed.connect(self._on_themes_theme_changed)

    def controls(self) -> Sequence[QWidget]:
        return (self._copy,)

    def show_state(self, state: AppState) -> None:
        for notice in state.notices[len(self._notices) :]:
            self._list.insertItem(0, QListWidgetItem(self._icon(notice), notice.text))
        if state.notices != self._notices:
            self._notices = state.notices
            self._list.setCurrentRow(0)
            self._copy.setEnabled(True)
            self._page.show_content()

    def _icon(self, notice: Notice) -> QIcon:
        return icon(notice.severity, self._themes.theme[_ROLES[notice.severity]])

    @property
    def _chosen(self) -> Notice | None:
        row = self._list.currentRow()
        return self._notices[len(self._notices) - 1 - row] if 0 <= row < len(self._notices) else None

    @Slot(int)
    def _on_list_current_row_changed(self, row: int) -> None:
        details = self._chosen.details if self._chosen else ""
        self._details.setPlainText(details)
        self._details.setVisible(bool(details))

    @Slot()
    def _on_themes_theme_changed(self) -> None:
        for row, notice in enumerate(reversed(self._notices)):
            self._list.item(row).setIcon(self._icon(notice))

    @Slot()
    def _on_copy_clicked(self) -> None:
        if notice := self._chosen:
            QGuiApplication.clipboard().setText(f"{notice.text}\n\n{notice.details}".strip())
