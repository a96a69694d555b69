"""All heads of a site as small pictures: see them at once, click one."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QVBoxLayout

from explorer.panels.panel import Panel
from explorer.plots.mosaic import HeadMosaic
from explorer.state.app_state import AppState
from explorer.state.moves import pick_head, set_thumbnail_size
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_2, SPACE_3
from explorer.viewmodels.records import MosaicPicture


class HeadsPanel(Panel):
    """Rows are layers, columns are heads; the chosen head has a border."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._mosaic = HeadMosaic(themes, self)
        self._mosaic.head_clicked.connect(self._on_mosaic_head_clicked)
        self._mosaic.thumbnail_size_changed.connect(self._on_mosaic_thumbnail_size_changed)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_3, SPACE_2, SPACE_3, SPACE_3)
        layout.addWidget(self._mosaic)

    def show_state(self, state: AppState) -> None:
        self._mosaic.set_selected_head((state.selection.layer, state.selection.head))

    def draw(self, picture: MosaicPicture) -> None:
        self._mosaic.set_picture(picture)

    def set_stale(self, is_stale: bool) -> None:
        self._mosaic.set_stale(is_stale)

    @Slot(int, int)
    def _on_mosaic_head_clicked(self, layer: int, head: int) -> None:
        self.intended.emit(pick_head(layer, head))

    @Slot(int)
    def _on_mosaic_thumbnail_size_changed(self, pixels: int) -> None:
        self.noticed.emit(set_thumbnail_size(pixels))
