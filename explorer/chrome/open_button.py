"""The button that opens: files, folders, recent ones, samples."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from explorer.actions.file_commands import FROM_CACHE
from explorer.actions.qt_actions import ActionTable
from explorer.theme.icons import icon


def open_button(actions: ActionTable, parent: QWidget) -> QToolButton:
    """A button with a menu of everything that can be opened."""
    button = QToolButton(parent)
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    button.setIcon(icon("open"))
    button.setText(button.tr("Open"))
    button.setToolTip(button.tr("Open a checkpoint: a file, a folder, a recent or cached one, a sample."))
    menu = QMenu(button)
    menu.setToolTipsVisible(True)
    menu.addActions([actions["open_file"], actions["open_folder"]])
    menu.addSeparator()
    menu.addMenu(actions.changing_menu("File", "Open recent"))
    menu.addMenu(actions.changing_menu("File", FROM_CACHE))
    menu.addMenu(actions.changing_menu("File", "Samples"))
    button.setMenu(menu)
    return button
