"""Training as the window sees it: commands go to the thread, phases into the state, numbers to whoever shows them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from explorer.pace import Pace
from explorer.settings.store import runs_path
from explorer.state.app_state import Notice
from explorer.state.moves import add_notice
from explorer.state.store import Store
from explorer.state.training import TrainingFacts, TrainingSnapshot
from explorer.state.training_moves import new_training, with_training
from explorer.workers.bridge import Bridge
from explorer.workers.training import TrainingThread

_DRAIN_MS = 33
_LOG = logging.getLogger(__name__)


class Trainer(QObject):
    """Holds the training thread. UI thread. A training is never held up by what is drawn of it."""

    advanced = Signal(object)
    """A TrainingSnapshot, only when there is news: every 33 ms, rarer where showing it is dear."""

    def __init__(self, store: Store, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._bridge = Bridge(self)
        self._bridge.arrived.connect(self._on_bridge_arrived, Qt.ConnectionType.QueuedConnection)
        self._thread = TrainingThread(self._bridge.deliver)
        self._snapshot: TrainingSnapshot | None = None
        self._pace = Pace()
        self._timer = QTimer(self, interval=_DRAIN_MS)
        self._timer.timeout.connect(self._on_timer_timeout)

    @property
    def snapshot(self) -> TrainingSnapshot | None:
        """The numbers told last; None before the first update of a training."""
        return self._snapshot

    @property
    def is_busy(self) -> bool:
        """Whether the thread has work that closing would end."""
        return self._thread.is_busy

    @property
    def can_save_again(self) -> bool:
        """Whether there is a run that could not be saved."""
        return self._thread.can_save_again

    def start(self) -> None:
        """Train as the form says, which has no problems."""
        draft = self._store.state.draft
        settings = draft.settings()
        self._snapshot = None
        self._store.settle(new_training(TrainingFacts(phase="starting", settings=settings)))
        self._thread.start(settings, draft.folder or runs_path())
        self._timer.start()

    def pause(self) -> None:
        """Hold before the next update."""
        self._thread.control.pause()
        self._store.settle(with_training(phase="paused"))

    def resume(self) -> None:
        self._thread.control.resume()
        self._store.settle(with_training(phase="running"))

    def step(self) -> None:
        """One more update, then hold."""
        self._thread.control.step()
        self._store.settle(with_training(phase="paused"))

    def stop(self) -> None:
        """End before the next update; what was learned is saved."""
        self._thread.control.stop()
        self._store.settle(with_training(phase="stopping"))

    def save_again(self, folder: Path | None = None) -> None:
        """Try to save once more what could not be saved, in its folder or in a new one."""
        self._store.settle(with_training(phase="stopping"))
        self._thread.save_again(folder)

    def discard(self) -> None:
        """Give up the run that could not be saved."""
        self._thread.discard()

    def close(self, timeout: float) -> bool:
        """Stop, save, once more what could not be saved, and wait; False when still busy after `timeout` seconds."""
        self._timer.stop()
        return self._thread.close(timeout)

    @Slot(object)
    def _on_bridge_arrived(self, facts: dict[str, Any]) -> None:
        self._drain()
        details = facts.pop("details", "")
        if facts.get("phase") == "running" and self._store.state.training.phase == "stopping":
            del facts["phase"]  # it was stopped before it heard of it
        self._store.settle(with_training(**facts))
        if not self._store.state.training.is_busy:
            self._timer.stop()
        if details:
            _LOG.error("%s\n%s", facts["problem"], details)
        if facts.get("phase") == "failed":  # whoever looks at another layout shall know it too
            self._store.settle(add_notice(Notice(severity="error", text=facts["problem"], details=details)))

    @Slot()
    def _on_timer_timeout(self) -> None:
        if self._pace.is_due():
            self._drain()

    def _drain(self) -> None:
        """Tell the latest numbers, if there are newer ones than were told."""
        latest = self._thread.snapshot(self._snapshot)
        if latest is not None:
            self._snapshot = latest
            self.advanced.emit(latest)
