"""The tree of stored tensors: one model over a table, no widget and no item a row."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHeaderView, QStyledItemDelegate, QStyleOptionViewItem, QTreeView, QWidget

from core_model.wording import shown, shown_end
from explorer.theme.metrics import SPACE_3, SPACE_6
from explorer.viewmodels.tensor_list import COLUMNS, Column, TensorGroup, TensorTable

_Index = QModelIndex | QPersistentModelIndex
_GROUP = 0
"""Internal number of a group; a row has that of its group, counted from 1."""
_WIDTHS = {"name": 184, "shape": 88, "dtype": 72, "size": 72, "role": 160, "file": 140}
"""At first; the names then take the room that they need and that the shapes beside them leave."""
_LEAST_NAME = 120
_MEASURED = 16
"""How many of the longest names are measured."""
_TOOLTIP = 1000
"""Characters of a name in its tooltip."""
_OPEN_UP_TO = 60
"""Rows that are shown with all their groups open."""


class TensorTreeModel(QAbstractItemModel):
    """Groups with their rows below them; a group without a title is left out, and its rows stand alone."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._table = TensorTable(rows=())
        self._groups: tuple[TensorGroup, ...] = ()
        self._is_flat = False

    def set_rows(self, table: TensorTable, groups: Sequence[TensorGroup]) -> None:
        """Show these."""
        self.beginResetModel()
        self._table, self._groups = table, tuple(groups)
        self._is_flat = len(groups) == 1 and not groups[0].title
        self.endResetModel()

    def name_at(self, index: _Index) -> str | None:
        """The tensor of a row; None for a group."""
        row = self._row_number(index) if index.isValid() else None
        return None if row is None else self._table.rows[row].name

    def longest_names(self, n: int) -> list[str]:
        """The names with the most characters, as they are shown."""
        shown_names = (
            self._table.rows[row].name.removeprefix(group.prefix) for group in self._groups for row in group.rows
        )
        return [shown_end(name) for name in heapq.nlargest(n, shown_names, key=len)]

    def index_of(self, name: str) -> QModelIndex:
        """The row of a tensor, invalid where it is not shown."""
        for number, group in enumerate(self._groups):
            for place, row in enumerate(group.rows):
                if self._table.rows[row].name == name:
                    return self.createIndex(place, 0, number + 1)
        return QModelIndex()

    # -- what Qt asks for ----------------------------------------------------------------------------------------------

    def index(self, row: int, column: int, parent: _Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        if not self.hasIndex(row, column, parent):
            return QModelIndex()
        if parent.isValid():
            return self.createIndex(row, column, parent.row() + 1)
        return self.createIndex(row, column, 1 if self._is_flat else _GROUP)

    def parent(self, child: _Index = QModelIndex()) -> QModelIndex:  # pyright: ignore[reportIncompatibleMethodOverride]  # noqa: B008
        number = child.internalId() if child.isValid() else _GROUP
        return QModelIndex() if number == _GROUP or self._is_flat else self.createIndex(number - 1, 0, _GROUP)

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        if not parent.isValid():
            return len(self._groups[0].rows) if self._is_flat else len(self._groups)
        is_group = parent.internalId() == _GROUP and parent.column() == 0
        return len(self._groups[parent.row()].rows) if is_group else 0

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        is_title = orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return COLUMNS[section][1] if is_title else None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return None
        column: Column = COLUMNS[index.column()][0]
        number = self._row_number(index)
        if number is None:
            return self._group_text(self._groups[index.row()], column)
        row = self._table.rows[number]
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{shown(row.name, _TOOLTIP)}\n{row.site}".rstrip()
        return shown_end(row.name.removeprefix(self._group_of(index).prefix)) if column == "name" else row.text(column)

    def _group_text(self, group: TensorGroup, column: Column) -> str:
        return f"{shown(group.title)} ({len(group.rows)})" if column == "name" else ""

    def _row_number(self, index: _Index) -> int | None:
        """The row of the table; None for a group."""
        number = index.internalId()
        return None if number == _GROUP else self._group_of(index).rows[index.row()]

    def _group_of(self, index: _Index) -> TensorGroup:
        """The group that a row belongs to."""
        return self._groups[index.internalId() - 1]


class _NameDelegate(QStyledItemDelegate):
    """Cuts names at their beginning: what tells them apart stands at the end."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: _Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        option.textElideMode = Qt.TextElideMode.ElideLeft  # pyright: ignore[reportAttributeAccessIssue]  (not in its stubs)


class TensorTree(QTreeView):
    """Tells which tensor the person goes to, by mouse or keys, and which column is to sort."""

    tensor_picked = Signal(str)
    sort_picked = Signal(object, bool)
    """(Column, whether falling)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = TensorTreeModel(self)
        self.setModel(self._model)
        self.setUniformRowHeights(True)
        self.setIndentation(SPACE_3)
        names = _NameDelegate(self)
        for number, (column, _) in enumerate(COLUMNS):
            if column in ("name", "role"):
                self.setItemDelegateForColumn(number, names)
        self.setFrameShape(QTreeView.Shape.NoFrame)
        header = self.header()
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(True)
        header.setSortIndicator(0, Qt.SortOrder.AscendingOrder)
        header.setStretchLastSection(True)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        for number, (column, _) in enumerate(COLUMNS):
            self.setColumnWidth(number, _WIDTHS[column])
        self._names_width = _LEAST_NAME
        self._is_drawn_out = False
        """Whether the person has chosen how wide the names are."""
        self._is_fitting = False
        header.sectionResized.connect(self._on_header_section_resized)
        header.sortIndicatorChanged.connect(self._on_header_sort_indicator_changed)
        self.selectionModel().currentChanged.connect(self._on_current_changed)

    def set_rows(self, table: TensorTable, groups: Sequence[TensorGroup], current: str | None) -> None:
        """Show these, the tensor of that name marked and in view."""
        self._model.set_rows(table, groups)
        if sum(len(group.rows) for group in groups) <= _OPEN_UP_TO:
            self.expandAll()
        widths = map(self.fontMetrics().horizontalAdvance, self._model.longest_names(_MEASURED))
        self._names_width = max(widths, default=0) + 2 * self.indentation() + SPACE_6
        self._fit_names()
        self.show_current(current)

    def show_current(self, name: str | None) -> None:
        """Mark a tensor; emits nothing."""
        if name is None or name == self._model.name_at(self.currentIndex()):
            return
        index = self._model.index_of(name)
        if not index.isValid():
            return
        self.selectionModel().blockSignals(True)
        self.setCurrentIndex(index)
        self.selectionModel().blockSignals(False)
        self.expand(index.parent())
        if self.isVisible():
            self.scrollTo(index)
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_names()

    def _fit_names(self) -> None:
        """As wide as the longest name, while the shape beside it stays in view."""
        if not self._is_drawn_out:
            self._is_fitting = True
            room = self.viewport().width() - self.columnWidth(1)
            self.setColumnWidth(0, max(_LEAST_NAME, min(self._names_width, room)))
            self._is_fitting = False

    @Slot(int, int, int)
    def _on_header_section_resized(self, section: int, before: int, now: int) -> None:
        self._is_drawn_out = self._is_drawn_out or (section == 0 and not self._is_fitting)

    @Slot(QModelIndex, QModelIndex)
    def _on_current_changed(self, current: QModelIndex, previous: QModelIndex) -> None:
        if (name := self._model.name_at(current)) is not None:
            self.tensor_picked.emit(name)

    @Slot(int, Qt.SortOrder)
    def _on_header_sort_indicator_changed(self, section: int, order: Qt.SortOrder) -> None:
        self.sort_picked.emit(COLUMNS[section][0], order == Qt.SortOrder.DescendingOrder)
