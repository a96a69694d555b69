"""The singular values of the tensor that is looked at."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout

from explorer.panels.panel import Panel
from explorer.plots.curves import CurvePlot
from explorer.theme.manager import ThemeManager
from explorer.viewmodels.records import CurvePicture


class SpectrumPanel(Panel):
    """A curve that is asked for only while it is on screen."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._curve = CurvePlot(themes, self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._curve)

    def draw(self, picture: CurvePicture) -> None:
        self._curve.set_picture(picture)

    def set_stale(self, is_stale: bool) -> None:
        self._curve.set_stale(is_stale)
