"""What commands ask a person in dialogs of the system: files, folders, numbers, yes or no."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QInputDialog, QMessageBox, QWidget

from explorer.state.store import Store


class Questions(QObject):
    """An answer is None where the person thought better of it. Files are looked for where the last checkpoint lies."""

    def __init__(self, store: Store, window: QWidget) -> None:
        super().__init__(window)
        self._store, self._window = store, window

    def file(self, title: str = "", kinds: str = "", *, beside: Path | None = None) -> Path | None:
        """A file, of kinds as QFileDialog has them, looked for beside another where one is given."""
        title = title or self.tr("Open a checkpoint")
        kinds = kinds or self.tr("Checkpoints (*.safetensors *.json);;All files (*)")
        start = str(beside.parent) if beside else self._start_folder()
        name, _ = QFileDialog.getOpenFileName(self._window, title, start, kinds)
        return Path(name) if name else None

    def folder(self, title: str = "") -> Path | None:
        """A folder that exists."""
        title = title or self.tr("Open a checkpoint folder")
        name = QFileDialog.getExistingDirectory(self._window, title, self._start_folder())
        return Path(name) if name else None

    def new_folder(self, title: str) -> Path | None:
        """A folder to write into, which may not exist yet."""
        options = QFileDialog.Option.ShowDirsOnly | QFileDialog.Option.DontConfirmOverwrite
        name, _ = QFileDialog.getSaveFileName(self._window, title, self._start_folder(), options=options)
        return Path(name) if name else None

    def number(self, title: str, label: str) -> int | None:
        """A number from 1."""
        number, is_given = QInputDialog.getInt(self._window, title, label, 1, 1)
        return number if is_given else None

    def is_yes(self, title: str, text: str) -> bool:
        """Whether the person says yes to it."""
        return QMessageBox.question(self._window, title, text) == QMessageBox.StandardButton.Yes

    def _start_folder(self) -> str:
        recent = self._store.state.recent
        return str(recent[0].parent) if recent else str(Path.home())
