"""The card that reads out the cell under the mouse of a matrix."""

from PySide6.QtCore import QPoint, Slot
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QWidget

from explorer.plots.heatmap import HeatmapPlot
from explorer.plots.matrix import Cell
from explorer.theme.manager import ThemeManager
from explorer.viewmodels.readout import readout
from explorer.widgets.cell_card import CellCard


class HoverCard(CellCard):
    """Says what the plot's picture holds, never what an older one held: hidden while the picture is old."""

    def __init__(self, themes: ThemeManager, plot: HeatmapPlot, parent: QWidget) -> None:
        super().__init__(themes, parent)
        self._plot = plot
        self._cell: Cell | None = None
        self._shape: Cell | None = None
        self._at = QPoint()
        self._is_stale = False
        plot.cell_hovered.connect(self._on_plot_cell_hovered)
        plot.hover_left.connect(self.forget)

    def read_anew(self) -> None:
        """The plot shows another picture. In a matrix of another size, another cell is under the mouse."""
        self._is_stale = False
        self._read()

    def set_stale(self, is_stale: bool) -> None:
        """The plot's picture is old, or is current again."""
        self._is_stale = is_stale
        self._read()

    @Slot()
    def forget(self) -> None:
        """The mouse is over no cell."""
        self._cell = None
        self.hide()

    def _read(self) -> None:
        picture = self._plot.picture
        if picture is None or picture.shape != self._shape:
            self.forget()
        cell = readout(picture, *self._cell) if picture and self._cell and not self._is_stale else None
        if cell is None:
            self.hide()
            return
        query, key = (cell.query, cell.query_text), (cell.key, cell.key_text)
        self.show_cell(query, key, cell.weight, cell.rank, self._at)

    @Slot(int, int)
    def _on_plot_cell_hovered(self, query: int, key: int) -> None:
        self._cell = query, key
        self._shape = self._plot.picture.shape if self._plot.picture else None
        self._at = self._room.mapFromGlobal(QCursor.pos())
        self._read()
