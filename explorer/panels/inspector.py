"""The inspector: the numbers of the cell and of the head that are looked at."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout

from explorer.panels.panel import Panel
from explorer.theme.manager import ThemeManager
from explorer.viewmodels.facts import FactSheet
from explorer.widgets.fact_sheet import FactSheetView


class InspectorPanel(Panel):
    """Follows the locked cell, else the mouse."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._sheet = FactSheetView(themes, self)
        self._sheet.setAccessibleName(self.tr("Numbers of the cell and of the head"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._sheet)

    def draw(self, picture: FactSheet) -> None:
        self._sheet.set_sheet(picture)
