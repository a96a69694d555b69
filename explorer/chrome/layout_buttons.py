"""The layouts side by side, the present one pressed."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from explorer.actions.qt_actions import ActionTable
from explorer.actions.view_commands import layouts_in_use


def layout_buttons(actions: ActionTable, parent: QWidget) -> QWidget:
    """A button for each layout, to go there and back."""
    row = QWidget(parent)
    layout = QHBoxLayout(row)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(0)
    for name in layouts_in_use():
        button = QToolButton(row, autoRaise=True, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextOnly)
        button.setDefaultAction(actions[f"layout_{name}"])
        layout.addWidget(button)
    return row
