"""The matrix: one head's attention, cell by cell."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QComboBox, QLabel, QVBoxLayout, QWidget

from explorer.panels.panel import Panel
from explorer.plots.heatmap import HeatmapPlot
from explorer.plots.hover_card import HoverCard
from explorer.state.app_state import AppState, Cell, Viewport
from explorer.state.moves import hover_cell, lock_cell, pick_head, pick_site, set_display, set_viewport
from explorer.state.source import Span
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_3
from explorer.viewmodels.colormap_labels import COLORMAP_LABELS
from explorer.viewmodels.records import HeatmapPicture
from explorer.viewmodels.scales import SCALE_LABELS
from explorer.viewmodels.sites import site_name
from explorer.widgets.head_picker import HeadPicker


class MatrixPanel(Panel):
    """Hover previews a cell, a click locks it, Esc frees it; wheel and drag ask for the exact part on screen."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._state = AppState()
        self._axes: tuple[Hashable, Hashable] | None = None
        self._plot = HeatmapPlot(themes, self)
        self._card = HoverCard(themes, self._plot, self)
        self._site = QComboBox()
        self._site.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._site.setToolTip(self.tr("Attention site: which tokens look at which."))
        self._heads = HeadPicker()
        self._heads.setToolTip(self.tr("Layer and head, counted from 0 ([ and ], comma and full stop)."))
        self._scale = QComboBox()
        self._scale.setToolTip(self.tr("Colour scale of the weights (S)."))
        for name, label in SCALE_LABELS.items():
            self._scale.addItem(label.title, name)
        self._colormap = QComboBox()
        self._colormap.setToolTip(self.tr("Colour map."))
        for name, label in COLORMAP_LABELS.items():
            self._colormap.addItem(label, name)
        for box, name in ((self._site, "site"), (self._scale, "colour scale"), (self._colormap, "colour map")):
            box.setAccessibleName(self.tr(name))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_3, SPACE_3, SPACE_3, SPACE_3)
        layout.addWidget(self._plot)
        self._connect()

    def _connect(self) -> None:
        self._site.activated.connect(self._on_site_activated)
        self._heads.head_picked.connect(self._on_heads_head_picked)
        self._scale.activated.connect(self._on_scale_activated)
        self._colormap.activated.connect(self._on_colormap_activated)
        self._plot.cell_hovered.connect(self._on_plot_cell_hovered)
        self._plot.hover_left.connect(self._on_plot_hover_left)
        self._plot.cell_clicked.connect(self._on_plot_cell_clicked)
        self._plot.lock_released.connect(self._on_plot_lock_released)
        self._plot.view_range_changed.connect(self._on_plot_view_range_changed)

    def controls(self) -> Sequence[QWidget]:
        scale, colours = QLabel(self.tr("scale")), QLabel(self.tr("colours"))
        scale.setBuddy(self._scale)
        colours.setBuddy(self._colormap)
        return self._site, self._heads, scale, self._scale, colours, self._colormap

    def show_state(self, state: AppState) -> None:
        is_card_old = state.hover is None or (state.locked != self._state.locked and state.locked != state.hover)
        self._state = state
        model, chosen, display = state.current_model, state.selection, state.display
        sites = model.info.sites if model else ()
        keys = [site.site for site in sites]
        if keys != [self._site.itemData(index) for index in range(self._site.count())]:
            self._site.clear()
            for site in sites:
                self._site.addItem(site_name(site.site), site.site)
                self._site.setItemData(self._site.count() - 1, site.label, Qt.ItemDataRole.ToolTipRole)
        self._site.setCurrentIndex(self._site.findData(chosen.site))
        self._site.setVisible(len(sites) > 1)
        site = model.site(chosen.site or "") if model else None
        self._heads.setEnabled(site is not None and model is not None and model.info.refusal is None)
        if site:
            self._heads.set_sizes(site.n_layers, site.n_heads)
            self._heads.set_head(chosen.layer, chosen.head)
        self._scale.setCurrentIndex(self._scale.findData(display.scale))
        self._colormap.setCurrentIndex(self._colormap.findData(display.colormap))
        if is_card_old:
            self._card.forget()
        self._mark_cells()

    def draw(self, picture: HeatmapPicture) -> None:
        self._axes = picture.axes
        self._plot.set_picture(picture)
        self._card.read_anew()
        self._mark_cells()

    def set_stale(self, is_stale: bool) -> None:
        self._plot.set_stale(is_stale)
        self._card.set_stale(is_stale)

    def take_focus(self) -> None:
        self._plot.setFocus()

    def zoom(self, step: int) -> None:
        """Closer (1), further (-1) or everything (0)."""
        {1: self._plot.zoom_in, -1: self._plot.zoom_out, 0: self._plot.reset_view}[step]()

    @property
    def _is_of_these_tokens(self) -> bool:
        """Whether the cells on screen are of the tokens that all panels speak of: those of an older text are not."""
        return self._axes == _axes_of(self._state)

    def _mark_cells(self) -> None:
        is_shown = self._is_of_these_tokens
        self._plot.set_locked_cell(_pair(self._state.locked) if is_shown else None)
        self._plot.set_hovered_cell(_pair(self._state.pointed) if is_shown else None)

    @Slot(int)
    def _on_site_activated(self, index: int) -> None:
        self.intended.emit(pick_site(self._site.itemData(index)))

    @Slot(int, int)
    def _on_heads_head_picked(self, layer: int, head: int) -> None:
        self.intended.emit(pick_head(layer, head))

    @Slot(int)
    def _on_scale_activated(self, index: int) -> None:
        self.intended.emit(set_display(scale=self._scale.itemData(index)))

    @Slot(int)
    def _on_colormap_activated(self, index: int) -> None:
        self.intended.emit(set_display(colormap=self._colormap.itemData(index)))

    @Slot(int, int)
    def _on_plot_cell_hovered(self, query: int, key: int) -> None:
        if self._is_of_these_tokens:
            self.noticed.emit(hover_cell(Cell(query=query, key=key)))
        else:
            self._mark_cells()

    @Slot()
    def _on_plot_hover_left(self) -> None:
        self.noticed.emit(hover_cell(None))

    @Slot(int, int)
    def _on_plot_cell_clicked(self, query: int, key: int) -> None:
        if self._is_of_these_tokens:
            self.intended.emit(lock_cell(Cell(query=query, key=key)))

    @Slot()
    def _on_plot_lock_released(self) -> None:
        self.intended.emit(lock_cell(None))

    @Slot(object, object, object)
    def _on_plot_view_range_changed(self, rows: Span, cols: Span, size: tuple[int, int]) -> None:
        self.noticed.emit(set_viewport(Viewport(rows=rows, cols=cols, size=size)))


def _axes_of(state: AppState) -> tuple[Hashable, Hashable] | None:
    """What queries and keys are, in the site that is shown; None while that is not known."""
    tokens, site = state.current_tokens, state.selection.site
    return (tokens.queries(site), tokens.keys(site)) if tokens and site and tokens.has(site) else None


def _pair(cell: Cell | None) -> tuple[int, int] | None:
    return (cell.query, cell.key) if cell else None
