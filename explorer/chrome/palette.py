"""The command palette: every command by a few letters of its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt, Slot
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from explorer.actions.command import Command
from explorer.actions.desk import Desk
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_1, SPACE_2, SPACE_3, TITLE_ROW
from explorer.viewmodels.search import best_matches

_WIDTH, _HEIGHT = 560, 400
_TOP = 72
_COMMAND = Qt.ItemDataRole.UserRole
_Index: TypeAlias = QModelIndex | QPersistentModelIndex


class CommandPalette(QWidget):
    """Typed letters narrow the list, arrows choose, Return runs, Esc or a click elsewhere closes."""

    def __init__(self, commands: Sequence[Command], desk: Desk, themes: ThemeManager, window: QWidget) -> None:
        super().__init__(window)
        self._commands = tuple(commands)
        self._desk = desk
        self._themes = themes
        self._before: QWidget | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(self.tr("All commands"))
        self._search = QLineEdit(self, placeholderText=self.tr("Type a few letters of a command"))
        self._search.textChanged.connect(self._on_search_text_changed)
        self._search.installEventFilter(self)
        self._list = QListWidget(self)
        self._list.setItemDelegate(_CommandDelegate(themes, self._list))
        self._list.setFrameShape(QListWidget.Shape.NoFrame)
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.setUniformItemSizes(True)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.itemClicked.connect(self._on_list_item_clicked)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_2, SPACE_2, SPACE_2, SPACE_2)
        layout.setSpacing(SPACE_1)
        layout.addWidget(self._search)
        layout.addWidget(self._list)
        self._list_matches("")

    def open_over(self, window: QWidget) -> None:
        """Show it near the top of the window."""
        width, height = min(_WIDTH, window.width()), min(_HEIGHT, window.height() - 2 * _TOP)
        self.setGeometry((window.width() - width) // 2, _TOP, width, height)
        self._before = window.focusWidget()
        self.show()
        self.raise_()
        self._search.setFocus()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self._themes.theme.border)
        painter.setBrush(QColor(self._themes.theme.surface))
        painter.drawRoundedRect(self.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5), SPACE_2, SPACE_2)
        painter.end()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keys that move or run go from the search line to the list."""
        if event.type() == QEvent.Type.FocusOut:
            self.close()
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 8, Qt.Key.Key_PageUp: -8}
            if event.key() in step:
                row = self._list.currentRow() + step[Qt.Key(event.key())]
                self._list.setCurrentRow(min(max(0, row), self._list.count() - 1))
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._run(self._list.currentItem())
                return True
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()  # before Esc frees the locked cell
            else:
                self._leave()
            return True
        return super().eventFilter(watched, event)

    def _list_matches(self, text: str) -> None:
        self._list.clear()
        names = [f"{command.title} {command.submenu} {command.menu}" for command in self._commands]
        for index in best_matches(text, names):
            item = QListWidgetItem(self._commands[index].title)
            item.setData(_COMMAND, self._commands[index])
            item.setToolTip(self._commands[index].tooltip)
            if not self._commands[index].is_enabled(self._desk):
                item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEnabled)
            self._list.addItem(item)
        self._list.setCurrentRow(0)

    def _run(self, item: QListWidgetItem | None) -> None:
        if item is None or not item.flags() & Qt.ItemFlag.ItemIsEnabled:
            return
        command: Command = item.data(_COMMAND)
        self._leave()
        command.run(self._desk)

    def _leave(self) -> None:
        """Close, and give the keys back to whatever had them."""
        if self._before is not None and isValid(self._before):
            self._before.setFocus(Qt.FocusReason.PopupFocusReason)
        self.close()

    @Slot(str)
    def _on_search_text_changed(self, text: str) -> None:
        self._list_matches(text)

    @Slot(QListWidgetItem)
    def _on_list_item_clicked(self, item: QListWidgetItem) -> None:
        self._run(item)


class _CommandDelegate(QStyledItemDelegate):
    """Title, then its place in the menus, dimmed; the shortcut at the right."""

    def __init__(self, themes: ThemeManager, parent: QObject) -> None:
        super().__init__(parent)
        self._themes = themes

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(0, TITLE_ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        theme = self._themes.theme
        command: Command = index.data(_COMMAND)
        is_enabled = bool(option.state & QStyle.StateFlag.State_Enabled)
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(option.rect, theme.selection)
        room = QRect(option.rect).adjusted(SPACE_3, 0, -SPACE_3, 0)
        painter.setPen(theme.text if is_enabled else theme.text_disabled)
        centre = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(room, centre | Qt.AlignmentFlag.AlignLeft, command.title)
        painter.setPen(theme.text_muted)
        place = " / ".join(part for part in (command.menu, command.submenu) if part)
        after = option.fontMetrics.horizontalAdvance(command.title) + SPACE_3
        painter.drawText(room.adjusted(after, 0, 0, 0), centre | Qt.AlignmentFlag.AlignLeft, place)
        keys = QKeySequence(command.shortcut.partition("|")[0]).toString(QKeySequence.SequenceFormat.NativeText)
        painter.drawText(room, centre | Qt.AlignmentFlag.AlignRight, keys)
        painter.restore()
