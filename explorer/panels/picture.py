"""The picture that the model reads, and where in it a query looks."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from explorer.panels.panel import Panel
from explorer.plots.patch_map import PatchMap
from explorer.state.app_state import AppState, Cell
from explorer.state.moves import hover_cell, lock_cell
from explorer.theme.fonts import caption_font, heading_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_1, SPACE_2, SPACE_3
from explorer.viewmodels.records import PatchPicture
from explorer.widgets.elided_label import ElidedLabel


class PicturePanel(Panel):
    """Follows the row in focus. Pointing at a patch reads it as a key; a click makes it the query."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._state = AppState()
        self._picture: PatchPicture | None = None
        self._title = ElidedLabel(parent=self)
        self._title.setFont(heading_font())
        self._note = ElidedLabel(parent=self, role=QPalette.ColorRole.PlaceholderText)
        self._note.setFont(caption_font())
        self._map = PatchMap(themes, self)
        self._map.setToolTip(self.tr("Point at a patch to read its weight, click it to see where it looks itself."))
        self._numbers = QCheckBox(self.tr("attention"))
        self._numbers.setChecked(True)
        self._numbers.setToolTip(self.tr("Lay the attention over the picture; without it the picture has its colours."))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_3, SPACE_2, SPACE_3, SPACE_3)
        layout.setSpacing(SPACE_1)
        for widget in (self._title, self._note):
            layout.addWidget(widget)
        layout.addSpacing(SPACE_1)
        layout.addWidget(self._map, 1)
        self._numbers.toggled.connect(self._map.set_numbers_shown)
        self._map.patch_hovered.connect(self._on_map_patch_hovered)
        self._map.hover_left.connect(self._on_map_hover_left)
        self._map.patch_clicked.connect(self._on_map_patch_clicked)

    def controls(self) -> Sequence[QWidget]:
        return (self._numbers,)

    def take_focus(self) -> None:
        self._map.setFocus()

    def show_state(self, state: AppState) -> None:
        self._state = state
        self._mark()

    def draw(self, picture: PatchPicture) -> None:
        self._picture = picture
        self._title.set_text(picture.title)
        self._map.set_picture(picture)
        self._mark()

    def set_stale(self, is_stale: bool) -> None:
        self._map.set_stale(is_stale)

    def _mark(self) -> None:
        """Mark the key in focus, and say its weight in the place of those of all."""
        cell, picture = self._state.focus, self._picture
        self._map.set_key(cell.key if cell else None)
        place = picture.place_of(cell.key) if picture and cell else None
        if picture is not None:
            self._note.set_text(
                self.tr("patch {row},{column}: {weight:.4f}").format(
                    row=place[0], column=place[1], weight=picture.weights[place]
                )
                if place
                else picture.note
            )

    @Slot(int)
    def _on_map_patch_hovered(self, index: int) -> None:
        if self._picture is not None:
            self.noticed.emit(hover_cell(Cell(query=self._picture.query, key=index)))

    @Slot()
    def _on_map_hover_left(self) -> None:
        self.noticed.emit(hover_cell(None))

    @Slot(int)
    def _on_map_patch_clicked(self, index: int) -> None:
        if self._picture is not None:
            query = index if self._picture.asks else self._picture.query
            self.intended.emit(lock_cell(Cell(query=query, key=index)))
