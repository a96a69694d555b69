"""The way out while a training runs, or while what one has learned is on no disk."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from explorer.state.app_state import AppState
from explorer.state.store import Store
from explorer.trainer import Trainer

_Button = QMessageBox.StandardButton


class Leaving(QObject):
    """Asks once before closing ends or loses a training, and closes the window when it is saved.

    Where the disk refuses it, the window stays: the training is still there, and a notice says why.
    """

    _nothing_left = Signal()

    def __init__(self, store: Store, trainer: Trainer, window: QWidget) -> None:
        super().__init__(window)
        self._store = store
        self._trainer = trainer
        self._window = window
        self._is_leaving = False
        self._nothing_left.connect(window.close, Qt.ConnectionType.QueuedConnection)
        store.watch(self._on_store_changed)

    def may_close(self) -> bool:
        """Whether the window may close now, after what the person was asked; False also where it will once it is saved.

        Asked again while a run is being saved, it is let go: that may take long on a disk that does not answer.
        """
        if self._is_leaving or not self._window.isVisible():  # a hidden one is being taken down
            return True
        if self._trainer.is_busy:
            self._stop_and_leave()
            return False
        return not self._trainer.can_save_again or self._may_lose_run()

    def _stop_and_leave(self) -> None:
        text = self.tr("A training is under way. Closing stops it and saves it as far as it has come.")
        buttons = _Button.Close | _Button.Cancel
        answer = QMessageBox.question(self._window, self.tr("Close while training?"), text, buttons)
        if answer == _Button.Close:
            self._is_leaving = True
            if self._store.state.training.is_busy:
                self._trainer.stop()
            else:  # it ended while the person was asked
                self._leave()

    def _may_lose_run(self) -> bool:
        text = self.tr("What the last training has learned could not be saved, and closing loses it. Save it first?")
        buttons = _Button.Save | _Button.Discard | _Button.Cancel
        answer = QMessageBox.question(self._window, self.tr("Close without saving?"), text, buttons)
        if answer == _Button.Save:
            self._is_leaving = True
            self._trainer.save_again()
        elif answer == _Button.Discard:
            self._trainer.discard()
        return answer == _Button.Discard

    def _leave(self) -> None:
        """Close, unless there is again something to lose."""
        self._is_leaving = False
        if not self._trainer.can_save_again:
            self._nothing_left.emit()

    def _on_store_changed(self, new: AppState, old: AppState) -> None:
        if self._is_leaving and old.training.is_busy and not new.training.is_busy:
            self._leave()
