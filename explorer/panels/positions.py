"""The positional encoding of the open model: chosen dimensions as curves, all of them as a matrix."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QLabel, QSplitter, QToolButton, QVBoxLayout, QWidget

from explorer.panels.panel import Panel
from explorer.plots.curves import CurvePlot
from explorer.plots.heatmap import HeatmapPlot
from explorer.state.app_state import AppState
from explorer.state.moves import set_position_curves, set_position_length
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_1, SPACE_2, SPACE_3
from explorer.viewmodels.positions import PositionsPicture, toggled
from explorer.widgets.editors import CountEditor


class PositionsPanel(Panel):
    """A click on a column of the matrix adds that dimension to the curves, or takes it away."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._picture: PositionsPicture | None = None
        self._words = QLabel(self)
        self._words.setWordWrap(True)
        self._words.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._curves = CurvePlot(themes, self)
        self._matrix = HeatmapPlot(themes, self)
        self._matrix.cell_clicked.connect(self._on_matrix_cell_clicked)
        self._length = CountEditor()
        self._length.setToolTip(self.tr("Positions shown; a learned table ends where its rows end."))
        self._length.setAccessibleName(self.tr("Positions shown"))
        self._length.value_picked.connect(self._on_length_value_picked)
        self._reset = QToolButton()
        self._reset.setText(self.tr("Reset curves"))
        self._reset.setToolTip(self.tr("Show the curves of the dimensions shown at first."))
        self._reset.clicked.connect(self._on_reset_clicked)
        splitter = QSplitter(Qt.Orientation.Vertical, self)
        splitter.setChildrenCollapsible(False)
        self._curves.setContentsMargins(0, 0, 0, SPACE_1)
        self._matrix.setContentsMargins(0, SPACE_3, 0, 0)
        splitter.addWidget(self._curves)
        splitter.addWidget(self._matrix)
        splitter.setSizes([400, 400])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_3, SPACE_3, SPACE_3, SPACE_3)
        layout.setSpacing(SPACE_2)
        layout.addWidget(self._words)
        layout.addWidget(splitter, 1)

    def controls(self) -> Sequence[QWidget]:
        label = QLabel(self.tr("positions"))
        label.setBuddy(self._length)
        return label, self._length, self._reset

    def show_state(self, state: AppState) -> None:
        self._length.set_value(state.position_length)
        self._reset.setEnabled(bool(state.position_curves))

    def draw(self, picture: PositionsPicture) -> None:
        self._picture = picture
        hint = self.tr(" Click a column of the matrix to draw its curve.") if picture.dimensions else ""
        self._words.setText(picture.explanation + hint)
        self._curves.set_picture(picture.curves)
        self._curves.setVisible(picture.curves is not None)
        self._matrix.set_picture(picture.matrix)
        self._matrix.setVisible(picture.matrix is not None)

    def set_stale(self, is_stale: bool) -> None:
        self._curves.set_stale(is_stale)
        self._matrix.set_stale(is_stale)

    def zoom(self, step: int) -> None:
        {1: self._matrix.zoom_in, -1: self._matrix.zoom_out, 0: self._matrix.reset_view}[step]()

    @Slot(int, int)
    def _on_matrix_cell_clicked(self, row: int, col: int) -> None:
        if self._picture is not None and self._picture.dimensions:
            self.noticed.emit(set_position_curves(toggled(self._picture.dimensions, col)))

    @Slot(object)
    def _on_length_value_picked(self, length: int) -> None:
        self.noticed.emit(set_position_length(length))

    @Slot()
    def _on_reset_clicked(self) -> None:
        self.noticed.emit(set_position_curves(()))
