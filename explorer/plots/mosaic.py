"""All heads of all layers as one picture."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer.theme.manager import ThemeManager
from explorer.viewmodels.records import MosaicPicture


class HeadMosaic(QWidget):
    """Layers run downward, heads to the right, as rows and columns of small pictures that fill the widget."""

    head_hovered = Signal(int, int)
    """(layer, head)"""
    hover_left = Signal()
    head_clicked = Signal(int, int)
    head_double_clicked = Signal(int, int)
    thumbnail_size_changed = Signal(int)
    """Edge of one picture in device pixels after a resize: the size that thumbnails are best made for."""

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_picture(self, picture: MosaicPicture | None) -> None: ...
    def set_stale(self, is_stale: bool) -> None: ...
    def set_selected_head(self, head: tuple[int, int] | None) -> None: ...
    def move_head(self, d_layer: int, d_head: int) -> None:
        """Move the selection (arrow keys do it too); emits `head_clicked`."""
