"""Composition root: what is built, in which order, and how it is taken down.

Start-up: application, log and fault hooks, settings, window; the window is painted; then the lanes start, and torch is
imported on their threads. Shutdown: timers, tokens, lanes with a bound, settings, docks, one collection, quit.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from PySide6.QtCore import QCoreApplication, QEventLoop, QObject, Qt, QTimer, Slot
from PySide6.QtWidgets import QApplication

from core_model.disk import what_refuses
from explorer.collector import Collector
from explorer.controller import Controller
from explorer.faults import FaultHooks, log_path, start_log
from explorer.main_window import MainWindow
from explorer.samples import Sample, bundled_samples
from explorer.settings.remember import settings_of, state_of
from explorer.settings.schema import Settings, WindowSettings
from explorer.settings.store import APPLICATION, SettingsStore, runs_path, settings_path
from explorer.state.app_state import AppState, ModelInput, Notice
from explorer.state.errands import Errand, KilledRunsQuery
from explorer.state.moves import add_notice, in_same_layout, open_source, set_inputs
from explorer.state.queries import LaneName
from explorer.state.source import Assumed
from explorer.state.store import Store
from explorer.state.training_moves import with_killed_runs
from explorer.theme.manager import ThemeChoice, ThemeManager
from explorer.trainer import Trainer
from explorer.workers.answers import ANSWERS
from explorer.workers.bridge import Bridge
from explorer.workers.engine import Engine
from explorer.workers.lane import Lane

_LANE_PATIENCE = 5.0
"""Seconds that a lane may take to reach its next check when the window closes."""
_TRAINING_PATIENCE = 120.0
"""Seconds that the update under way and the saving of the run may take: what it has learned is not to be lost."""
_SAVE_MS = 1000
_LOG = logging.getLogger(__name__)


def make_application(arguments: Sequence[str]) -> QApplication:
    """Qt's application object; the environment decides the platform."""
    application = QApplication(list(arguments))
    application.setApplicationName(APPLICATION)
    application.setApplicationDisplayName("Transformer Explorer")
    return application


def run(open_path: Path | None = None, assume: Assumed = ()) -> int:
    """Show the window, with a checkpoint and what is known of it, until it is closed; return the exit status."""
    application = make_application(sys.argv[:1])
    store = SettingsStore(settings_path())
    settings, trouble = store.load()
    explorer = build(application, settings, keeper=store)
    try:
        start_log()
    except OSError as error:
        told = explorer.tr("There is no log of this session: {path} cannot be written, {why}.")
        explorer.tell(told.format(path=log_path(), why=_why(error, log_path(), "XDG_STATE_HOME")))
    if trouble:
        explorer.tell(trouble)
    hooks = FaultHooks(explorer.faults.deliver)
    collector = Collector()
    explorer.start_when_painted(open_path, assume)
    explorer.window.show()
    with _ended_by_signals(application):
        status = application.exec()
        explorer.close()
    hooks.remove()
    collector.close()
    if not explorer.is_at_rest:
        _leave_at_once(status)
    return status


@contextmanager
def _ended_by_signals(application: QApplication) -> Iterator[None]:
    """Ctrl-C in the terminal and the end of the session close the window without asking; a training saves itself.

    Python runs the handlers when it next has its turn: the collector's timer gives it one twice a second.
    """

    def end(number: int, frame: FrameType | None) -> None:
        application.exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _why(error: OSError, path: Path, variable: str) -> str:
    """Why a file of our own cannot be written and what helps: nobody chose its folder, but `variable` moves it."""
    step = QCoreApplication.translate("app", "free some space or allow writing there")
    if sys.platform == "linux":
        step = QCoreApplication.translate(
            "app", "free some space or allow writing there, or set {variable} to another folder"
        ).format(variable=variable)
    return f"{what_refuses(error, path)}; {step}"


def _leave_at_once(status: int) -> NoReturn:
    """End the process under a thread that still computes: Python's own way out would abort it within torch."""
    logging.shutdown()
    os._exit(status)


def build(
    application: QApplication,
    settings: Settings,
    *,
    keeper: SettingsStore | None = None,
    engine: Engine | None = None,
    samples: Sequence[Sample] | None = None,
) -> Explorer:
    """Everything wired, nothing shown or started. Without a `keeper` nothing is written on closing."""
    themes = ThemeManager(application, ThemeChoice(settings.theme))
    return Explorer(
        themes,
        settings,
        keeper=keeper,
        engine=engine or Engine(ANSWERS),
        samples=bundled_samples() if samples is None else samples,
    )


class Explorer(QObject):
    """The running application."""

    def __init__(
        self,
        themes: ThemeManager,
        settings: Settings,
        *,
        keeper: SettingsStore | None,
        engine: Engine,
        samples: Sequence[Sample],
    ) -> None:
        super().__init__()
        self._keeper = keeper
        self._samples = tuple(samples)
        self._engine = engine
        self._is_open = True
        self.is_at_rest = False
        """Whether it was closed and every thread has ended."""
        self._first: tuple[Path | None, Assumed] = None, ()
        self._is_forgetful = False
        self.faults = Bridge(self)
        self.faults.arrived.connect(self._on_faults_arrived, Qt.ConnectionType.QueuedConnection)
        self.store = Store(state_of(settings))
        bridge = Bridge(self)
        names: tuple[LaneName, ...] = ("interactive", "io", "errands")
        lanes: dict[LaneName, Lane] = {name: Lane(name, engine.answer, bridge.deliver) for name in names}
        self.controller = Controller(self.store, lanes, bridge, self)
        self.trainer = Trainer(self.store, self)
        self.window = MainWindow(self.store, self.controller, self.trainer, themes, self._samples, settings.window)
        self.window.closed.connect(self.close)
        self._saving = QTimer(self, interval=_SAVE_MS, singleShot=True)
        self._saving.timeout.connect(self._on_saving_timeout)
        self.store.watch(self._on_store_changed)

    def start_when_painted(self, path: Path | None, assume: Assumed = ()) -> None:
        """Start as soon as the window has been on screen once."""
        self._first = path, assume
        self.window.first_painted.connect(self._on_window_first_painted, Qt.ConnectionType.QueuedConnection)

    def start(self, path: Path | None = None, inputs: ModelInput | None = None, *, assume: Assumed = ()) -> None:
        """Start the lanes, with a checkpoint, or with the first sample when none is named."""
        if path is not None:
            if self._samples:
                self.store.settle(set_inputs(ModelInput(text=self._samples[0].text)))
            self.store.settle(open_source(path, inputs=inputs, assume=assume))
        elif self._samples:
            self.store.settle(in_same_layout(self._samples[0].opening))
        self.controller.start()

    def wait_until_idle(self, seconds: float) -> bool:
        """Run the event loop until every answer is drawn; False when that took longer than `seconds`."""
        loop, patience = QEventLoop(), QTimer(singleShot=True)
        patience.timeout.connect(loop.quit)
        self.controller.idle_changed.connect(loop.quit)
        patience.start(round(seconds * 1000))
        while not self.controller.is_idle and patience.isActive():  # an answer may ask for the next one
            loop.exec()
        patience.stop()
        self.controller.idle_changed.disconnect(loop.quit)
        return self.controller.is_idle

    def tell(self, text: str) -> None:
        """A warning for the person."""
        self.store.settle(add_notice(Notice(severity="warning", text=text)))

    @Slot()
    def close(self) -> None:
        """Take everything down, in order; once."""
        if not self._is_open:
            return
        self._is_open = False
        self._saving.stop()
        remembered = self.window.remembered()
        self.window.hide()  # what follows may take a moment: nobody shall look at a frozen window
        is_saved, is_answered = self.trainer.close(_TRAINING_PATIENCE), self.controller.close(_LANE_PATIENCE)
        if not is_saved:
            _LOG.warning("the training was still busy %s s after it was told to stop", _TRAINING_PATIENCE)
        if self.trainer.can_save_again:
            _LOG.error("what the last training has learned is lost: it could not be saved")
        if not is_answered:
            _LOG.warning("a lane was still busy %s s after it was told to stop", _LANE_PATIENCE)
        self.is_at_rest = is_saved and is_answered
        self._save(remembered)
        if is_answered:
            self._engine.close()
        self.window.close()
        self.window.deleteLater()

    def _save(self, window: WindowSettings) -> None:
        if self._keeper is None:
            return
        try:
            self._keeper.save(settings_of(self.store.state, window))
        except OSError as error:
            path = self._keeper.path
            why = _why(error, path, "XDG_CONFIG_HOME")
            _LOG.error("settings cannot be saved: %s, %s", path, why)
            if not self._is_forgetful:
                self._is_forgetful = True
                told = self.tr("What you choose is not remembered for the next start: {path} cannot be written, {why}.")
                self.tell(told.format(path=path, why=why))

    @Slot()
    def _on_window_first_painted(self) -> None:
        path, assume = self._first
        self.start(path, assume=assume)
        places = dict.fromkeys((runs_path(), *(path.parent for path in self.store.state.recent)))
        self.window.run_errand(Errand(query=KilledRunsQuery(places=tuple(places)), learn=with_killed_runs))

    @Slot(object)
    def _on_faults_arrived(self, notice: Notice) -> None:
        self.store.settle(add_notice(notice))

    @Slot()
    def _on_saving_timeout(self) -> None:
        self._save(self.window.remembered())

    def _on_store_changed(self, new: AppState, old: AppState) -> None:
        """Remember choices soon after they are made, not only on closing."""
        if any(getattr(new, name) != getattr(old, name) for name in ("display", "theme", "layout", "export", "recent")):
            self._saving.start()
