"""One tensor: its picture, and below it its facts, its histogram, its singular values."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QComboBox, QLabel, QSplitter, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from explorer.panels.panel import Panel
from explorer.plots.curves import CurvePlot
from explorer.plots.heatmap import HeatmapPlot
from explorer.state.app_state import AppState
from explorer.state.moves import pick_head
from explorer.state.source import Span
from explorer.state.tensor_moves import pick_head_part, set_pooling, set_tensor_port
from explorer.state.tensors import TensorPort
from explorer.theme.fonts import caption_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_2, SPACE_3
from explorer.viewmodels.tensor_picture import PARTS, POOLINGS, TensorPicture, cell_text
from explorer.widgets.editors import ChoiceEditor
from explorer.widgets.fact_sheet import FactSheetView
from explorer.widgets.head_picker import HeadPicker

_STORED = "stored"
"""The choice of the stored tensor among the parts of a head."""
_HEIGHTS = [360, 220]


class TensorPanel(Panel):
    """Wheel and drag ask for the exact part on screen; layer and head are those every view shares."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._picture: TensorPicture | None = None
        self._part = ChoiceEditor(
            [(_STORED, self.tr("Stored tensor")), *((key, title) for key, (title, _) in PARTS.items())],
            {_STORED: self.tr("The tensor chosen in the list."), **{key: text for key, (_, text) in PARTS.items()}},
        )
        self._part.setToolTip(self.tr("The stored tensor, or the weights of one head."))
        self._part.setAccessibleName(self.tr("What is shown"))
        self._heads = HeadPicker(self)
        self._heads.setToolTip(self.tr("Layer and head, counted from 0 ([ and ], comma and full stop)."))
        self._pooling = ChoiceEditor(
            [(key, title) for key, (title, _) in POOLINGS.items()], {key: text for key, (_, text) in POOLINGS.items()}
        )
        self._pooling.setToolTip(self.tr("What a pixel shows of the numbers under it."))
        self._pooling.setAccessibleName(self.tr("Pooling"))
        for box in (self._part, self._pooling):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._matrix = HeatmapPlot(themes, self)
        self._no_matrix = QLabel(self.tr("This tensor has no elements."), self)
        self._no_matrix.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._cell = QLabel(self)
        self._cell.setFont(caption_font())
        self._cell.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._tabs = QTabBar(self, drawBase=False, expanding=False)
        self._tabs.setAccessibleName(self.tr("Numbers, histogram, singular values"))
        self._facts = FactSheetView(themes, self)
        self._histogram = CurvePlot(themes, self)
        self._pages = QStackedWidget(self)
        self._build()
        self._connect()

    def adopt(self, panel: Panel, place: QWidget) -> None:
        """On a page of its own: what it shows is computed when the page is opened."""
        self._add_page(place, self.tr("Singular values"), self.tr("How much the matrix can stretch, rank by rank."))

    def controls(self) -> Sequence[QWidget]:
        return self._part, self._heads, self._pooling

    def show_state(self, state: AppState) -> None:
        chosen, selection, model = state.tensors, state.selection, state.current_model
        site = model.site(selection.site or "") if model and model.info.refusal is None else None
        self._part.setEnabled(site is not None)
        self._part.set_value(chosen.part or _STORED)
        self._heads.setVisible(chosen.part is not None and site is not None)
        self._pooling.set_value(chosen.pooling)
        if site:
            self._heads.set_sizes(site.n_layers, site.n_heads)
            self._heads.set_head(selection.layer, selection.head)

    def draw(self, picture: TensorPicture) -> None:
        self._picture = picture
        self._matrix.set_picture(picture.matrix)
        self._matrix.setVisible(picture.matrix is not None)
        self._no_matrix.setVisible(picture.matrix is None)
        self._cell.clear()
        self._facts.set_sheet(picture.facts)
        self._histogram.set_picture(picture.histogram)

    def set_stale(self, is_stale: bool) -> None:
        self._matrix.set_stale(is_stale)
        self._histogram.set_stale(is_stale)

    def take_focus(self) -> None:
        self._matrix.setFocus()

    def zoom(self, step: int) -> None:
        {1: self._matrix.zoom_in, -1: self._matrix.zoom_out, 0: self._matrix.reset_view}[step]()

    def _build(self) -> None:
        above, below = QWidget(self), QWidget(self)
        upper, lower = QVBoxLayout(above), QVBoxLayout(below)
        for column in (upper, lower):
            column.setContentsMargins(0, 0, 0, 0)
            column.setSpacing(SPACE_2)
        upper.addWidget(self._matrix, 1)
        upper.addWidget(self._no_matrix, 1)
        upper.addWidget(self._cell)
        lower.addWidget(self._tabs)
        lower.addWidget(self._pages, 1)
        self._add_page(self._facts, self.tr("Numbers"), self.tr("Range, mean, spread, norm, zeros."))
        self._add_page(self._histogram, self.tr("Histogram"), self.tr("How many numbers have which value."))
        splitter = QSplitter(Qt.Orientation.Vertical, self, childrenCollapsible=False)
        splitter.addWidget(above)
        splitter.addWidget(below)
        splitter.setSizes(_HEIGHTS)
        splitter.setStretchFactor(0, 3)
        splitter.setStretchFactor(1, 2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_2, SPACE_3, SPACE_3, SPACE_3)
        layout.setSpacing(SPACE_2)
        layout.addWidget(splitter, 1)

    def _add_page(self, page: QWidget, title: str, tooltip: str) -> None:
        self._pages.addWidget(page)
        self._tabs.setTabToolTip(self._tabs.addTab(title), tooltip)

    def _connect(self) -> None:
        self._part.value_picked.connect(self._on_part_value_picked)
        self._heads.head_picked.connect(self._on_heads_head_picked)
        self._pooling.value_picked.connect(self._on_pooling_value_picked)
        self._matrix.cell_hovered.connect(self._on_matrix_cell_hovered)
        self._matrix.hover_left.connect(self._cell.clear)
        self._matrix.view_range_changed.connect(self._on_matrix_view_range_changed)
        self._tabs.currentChanged.connect(self._pages.setCurrentIndex)

    @Slot(object)
    def _on_part_value_picked(self, part: str) -> None:
        self.noticed.emit(pick_head_part(next((key for key in PARTS if key == part), None)))

    @Slot(int, int)
    def _on_heads_head_picked(self, layer: int, head: int) -> None:
        self.intended.emit(pick_head(layer, head))

    @Slot(object)
    def _on_pooling_value_picked(self, pooling: str) -> None:
        self.noticed.emit(set_pooling(next(key for key in POOLINGS if key == pooling)))

    @Slot(int, int)
    def _on_matrix_cell_hovered(self, row: int, col: int) -> None:
        matrix = self._matrix.picture
        self._cell.setText(cell_text(matrix, row, col) if matrix else "")

    @Slot(object, object, object)
    def _on_matrix_view_range_changed(self, rows: Span, cols: Span, size: tuple[int, int]) -> None:
        """Ask for what the whole picture does not show yet."""
        picture = self._picture
        if picture is None or picture.matrix is None:
            return
        is_whole = (rows, cols) == ((0, picture.matrix.shape[0]), (0, picture.matrix.shape[1]))
        is_enough = is_whole or (picture.matrix.is_exact and picture.matrix.is_whole)
        port = None if is_enough else TensorPort(subject=picture.subject, rows=rows, cols=cols, size=size)
        self.noticed.emit(set_tensor_port(port))
