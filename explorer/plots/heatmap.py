"""A matrix as a picture: cells, token labels, colour bar, marginal strips; zoom, pan, hover and lock."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer.theme.manager import ThemeManager
from explorer.viewmodels.records import HeatmapPicture


class HeatmapPlot(QWidget):
    """Shows a HeatmapPicture. Rows and columns in signals and methods are token indices of the whole matrix."""

    cell_hovered = Signal(int, int)
    """(row, col) under the mouse or moved to with the arrow keys; once per change."""
    hover_left = Signal()
    cell_clicked = Signal(int, int)
    """(row, col) clicked, or Enter pressed on the marked cell. The owner decides whether it locks."""
    lock_released = Signal()
    """Esc."""
    view_range_changed = Signal(object, object, object)
    """((row0, row1), (col0, col1), (height, width) in device pixels): what is on screen and an exact tile should cover;
    once a frame at most."""

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_picture(self, picture: HeatmapPicture | None) -> None:
        """Show a picture, or nothing. The zoom stays while the whole matrix keeps its size."""

    def set_stale(self, is_stale: bool) -> None:
        """Dim the picture while its successor is computed; after 0.3 s say so. `set_picture` ends it."""

    def set_locked_cell(self, cell: tuple[int, int] | None) -> None:
        """Draw the border that stays."""

    def set_hovered_cell(self, cell: tuple[int, int] | None) -> None:
        """Mark a cell that is hovered in another view; emits nothing."""

    def move_cell(self, d_row: int, d_col: int) -> None:
        """Move the locked cell (emits `cell_clicked`), or else the hovered one (emits `cell_hovered`), into view."""

    def zoom_in(self) -> None: ...
    def zoom_out(self) -> None: ...
    def reset_view(self) -> None: ...
    def set_view_range(self, rows: tuple[float, float], cols: tuple[float, float]) -> None: ...
