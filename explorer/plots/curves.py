"""Named curves over one x axis: losses, schedules, norms, positions."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer.theme.manager import ThemeManager
from explorer.viewmodels.records import CurvePicture


class CurvePlot(QWidget):
    """Shows a CurvePicture; the legend above the axes reads out each curve at the pointer, or else its latest value."""

    x_hovered = Signal(float)
    hover_left = Signal()

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_picture(self, picture: CurvePicture | None) -> None:
        """Show curves. Those whose names stay are updated in place; x follows the data until the user zooms."""

    def set_marker(self, x: float | None, label: str = "") -> None:
        """Move the vertical line alone."""

    def set_stale(self, is_stale: bool) -> None: ...
    def zoom_in(self) -> None: ...
    def zoom_out(self) -> None: ...
    def reset_view(self) -> None:
        """Show everything and follow the latest x again."""
