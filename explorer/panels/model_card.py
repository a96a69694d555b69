"""The model card: what the checkpoint is, and how sure that is."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout

from explorer.panels.panel import Panel
from explorer.theme.manager import ThemeManager
from explorer.viewmodels.facts import FactSheet
from explorer.widgets.fact_sheet import FactSheetView


class ModelCardPanel(Panel):
    """Every fact is stated by the config, inferred from shapes and names, or unknown, and says which."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._sheet = FactSheetView(themes, self)
        self._sheet.setAccessibleName(self.tr("Model card"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._sheet)

    def draw(self, picture: FactSheet) -> None:
        self._sheet.set_sheet(picture)
