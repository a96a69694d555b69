"""Keys of commands, kept from the field that has the focus.

Text fields take keys before any shortcut does, on Linux and macOS those of Emacs too: Ctrl+E goes to the end of the
line. Where a command has such a key, the command wins; typing and the keys that people edit with stay with the field.
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QObject, Slot
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

_Standard = QKeySequence.StandardKey
_EDITING = (
    _Standard.Undo,
    _Standard.Redo,
    _Standard.Cut,
    _Standard.Copy,
    _Standard.Paste,
    _Standard.SelectAll,
    _Standard.MoveToNextWord,
    _Standard.MoveToPreviousWord,
    _Standard.SelectNextWord,
    _Standard.SelectPreviousWord,
    _Standard.DeleteStartOfWord,
    _Standard.DeleteEndOfWord,
)
"""What stays with a field."""
_REDO = QKeySequence("Ctrl+Y")
"""What many press to redo, where the platform's own key is another: in a field it redoes there, not in the window."""


class CommandKeys(QObject):
    """Watches whichever widget of the window has the focus, and lets it take no key of a command but to edit."""

    def __init__(self, actions: Iterable[QAction], window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        editing = {key for standard in _EDITING for key in QKeySequence.keyBindings(standard)}
        keys = {key for action in actions for key in action.shortcuts()} - {_REDO}
        self._keys = {key for key in keys - editing if "Ctrl+" in key.toString()}  # the others type something
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus_changed)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride and self._is_ours(event):
            event.ignore()
            return True
        if isinstance(event, QKeyEvent) and isinstance(watched, QLineEdit) and _key(event) == _REDO:
            if event.type() == QEvent.Type.KeyPress:
                watched.redo()
            event.accept()
            return True
        return super().eventFilter(watched, event)

    def _is_ours(self, event: QKeyEvent) -> bool:
        return _key(event) in self._keys

    @Slot(QWidget, QWidget)
    def _on_focus_changed(self, old: QWidget | None, now: QWidget | None) -> None:
        if old is not None:
            old.removeEventFilter(self)
        if now is not None and self._window.isAncestorOf(now):
            now.installEventFilter(self)


def _key(event: QKeyEvent) -> QKeySequence:
    return QKeySequence(event.keyCombination())
