"""The tensors of the open checkpoint as a tree, and beside it the one that is looked at."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QSplitter, QVBoxLayout, QWidget

from explorer.panels.panel import Panel
from explorer.state.app_state import AppState
from explorer.state.tensor_moves import pick_tensor
from explorer.theme.fonts import caption_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_2, SPACE_3
from explorer.viewmodels.tensor_list import GROUPINGS, Column, TensorGroup, TensorTable, arranged, first_to_see, totals
from explorer.widgets.editors import ChoiceEditor
from explorer.widgets.tensor_tree import TensorTree

_SIDES = [350, 370]


class TensorsPanel(Panel):
    """Filter, order and groups are the list's own affair; the tensor looked at is the state's."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._table = TensorTable(rows=())
        self._groups: tuple[TensorGroup, ...] = ()
        self._state = AppState()
        self._inner: Panel | None = None
        self._column: Column = "name"
        self._is_falling = False
        self._refusal = QLabel(self, wordWrap=True)
        self._refusal.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._refusal.setContentsMargins(SPACE_3, SPACE_3, SPACE_3, 0)
        self._filter = QLineEdit(self, clearButtonEnabled=True)
        self._filter.setPlaceholderText(self.tr("Filter: name, role, type, file"))
        self._filter.setToolTip(self.tr("Show only tensors that have every word typed here."))
        self._filter.setAccessibleName(self.tr("Filter"))
        self._filter.textChanged.connect(self._on_filter_text_changed)
        self._grouping = ChoiceEditor(GROUPINGS)
        self._grouping.setToolTip(self.tr("How the tensors are grouped."))
        self._grouping.setAccessibleName(self.tr("Grouping"))
        self._grouping.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._grouping.set_value("layer")
        self._grouping.value_picked.connect(self._on_grouping_value_picked)
        self._tree = TensorTree(self)
        self._tree.setAccessibleName(self.tr("Tensors"))
        self._tree.tensor_picked.connect(self._on_tree_tensor_picked)
        self._tree.sort_picked.connect(self._on_tree_sort_picked)
        self._totals = QLabel(self, wordWrap=True)
        self._totals.setFont(caption_font())
        self._totals.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._splitter = QSplitter(Qt.Orientation.Horizontal, self, childrenCollapsible=False)
        self._splitter.addWidget(self._list())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._refusal)
        layout.addWidget(self._splitter, 1)

    def adopt(self, panel: Panel, place: QWidget) -> None:
        self._inner = panel
        self._splitter.addWidget(place)
        self._splitter.setSizes(_SIDES)
        self._splitter.setStretchFactor(0, 2)
        self._splitter.setStretchFactor(1, 3)

    def controls(self) -> Sequence[QWidget]:
        return self._grouping, *(self._inner.controls() if self._inner is not None else ())

    def show_state(self, state: AppState) -> None:
        self._state = state
        refusal = state.current_model.info.refusal if state.current_model else None
        self._refusal.setText((refusal or "").partition(". ")[0])
        self._refusal.setToolTip(refusal or "")
        self._refusal.setVisible(refusal is not None)
        if state.tensors.source == state.source:
            self._tree.show_current(state.tensors.name)

    def draw(self, picture: TensorTable) -> None:
        self._table = picture
        self._arrange()
        has_chosen = self._state.tensors.source == self._state.source
        if not has_chosen and (name := first_to_see(picture, self._groups)) is not None:
            self.noticed.emit(pick_tensor(name))

    def take_focus(self) -> None:
        self._tree.setFocus()

    def zoom(self, step: int) -> None:
        if self._inner is not None:
            self._inner.zoom(step)

    def _list(self) -> QWidget:
        side = QWidget(self)
        column = QVBoxLayout(side)
        column.setContentsMargins(SPACE_3, SPACE_3, SPACE_2, SPACE_3)
        column.setSpacing(SPACE_2)
        column.addWidget(self._filter)
        column.addWidget(self._tree, 1)
        column.addWidget(self._totals)
        return side

    def _arrange(self) -> None:
        self._groups = arranged(
            self._table,
            words=self._filter.text(),
            grouping=self._grouping.currentData(),
            column=self._column,
            is_falling=self._is_falling,
        )
        self._tree.set_rows(self._table, self._groups, self._state.tensors.name)
        self._totals.setText(totals(self._table, self._groups))

    @Slot(str)
    def _on_filter_text_changed(self, text: str) -> None:
        self._arrange()

    @Slot(object)
    def _on_grouping_value_picked(self, grouping: str) -> None:
        self._arrange()

    @Slot(object, bool)
    def _on_tree_sort_picked(self, column: Column, is_falling: bool) -> None:
        self._column, self._is_falling = column, is_falling
        self._arrange()

    @Slot(str)
    def _on_tree_tensor_picked(self, name: str) -> None:
        self.noticed.emit(pick_tensor(name))
