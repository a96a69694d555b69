"""The thread that trains: at most one training at a time, which tells its phases and leaves its numbers to be read."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_model.cancel import CancelToken
from core_model.errors import CoreError
from core_model.training.control import TrainControl
from core_model.training.settings import TrainingSettings
from explorer.state.training import TrainingSnapshot
from explorer.workers.training_log import TrainingLog

if TYPE_CHECKING:
    from core_model.training.runs import Run


class TrainingThread:
    """Started, held, ended from the UI thread; works and calls `report` on its own.

    `report` gets fields of TrainingFacts by name whenever they change. Threads are never terminated: closing stops the
    training at its next update, which saves it, and waits.
    """

    def __init__(self, report: Callable[[dict[str, Any]], None]) -> None:
        self._report = report
        self._thread: threading.Thread | None = None
        self._log: TrainingLog | None = None
        self._run: Run | None = None
        self._is_working = False
        self._is_closing = False
        self.control = TrainControl()

    @property
    def can_save_again(self) -> bool:
        """Whether there is a run that could not be saved."""
        return self._run is not None and not self.is_busy

    @property
    def is_busy(self) -> bool:
        """Whether a training or a save is under way."""
        return self._is_working

    def start(self, settings: TrainingSettings, runs: Path) -> None:
        """Train with these settings into the next free folder of `runs`.

        A run that could not be saved is given up once the new one has begun.
        """
        assert not self.is_busy, "one training at a time"
        self.control = TrainControl()
        self._log = TrainingLog(settings)
        self._work_on(lambda: self._train(settings, runs))

    def save_again(self, folder: Path | None = None) -> None:
        """Try to save once more what could not be saved, in its folder or in a new one."""
        assert self.can_save_again, "there is nothing to save"
        self._work_on(lambda: self._save(folder))

    def discard(self) -> None:
        """Give up the run that could not be saved."""
        assert self.can_save_again, "there is nothing to give up"
        self._run = None

    def snapshot(self, seen: TrainingSnapshot | None) -> TrainingSnapshot | None:
        """The numbers so far; None when there is nothing newer than `seen`."""
        if self._log is None or self._log.last is (seen.last if seen else None):
            return None
        return self._log.snapshot()

    def close(self, timeout: float) -> bool:
        """Stop, save, once more what could not be saved, and wait; False when still busy after `timeout` seconds."""
        self._is_closing = True
        if self.can_save_again:
            self.save_again()
        self.control.stop()
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _work_on(self, work: Callable[[], None]) -> None:
        if self._thread is not None:
            self._thread.join()  # it has told its end and has nothing left to do
        self._is_working = True
        self._thread = threading.Thread(target=self._guarded, args=(work,), name="training", daemon=True)
        self._thread.start()

    def _guarded(self, work: Callable[[], None]) -> None:
        """Whatever happens is told; with its traceback where it is a fault of this program."""
        try:
            work()
        except CoreError as error:
            self._end(phase="failed", problem=f"{error}{self._way_out()}")
        except Exception as error:
            self._end(
                phase="failed",
                problem=f"{type(error).__name__}: {error}{self._way_out()}",
                details=traceback.format_exc(),
            )

    def _train(self, settings: TrainingSettings, runs: Path) -> None:
        from core_model.training.runs import Run, claimed_run_folder

        with claimed_run_folder(runs, settings.task) as folder:
            self._follow(Run(settings, folder))
        self._end(phase="finished")

    def _follow(self, run: Run) -> None:
        """Run it to its end, and tell how it goes."""
        self._run, (text, target) = run, run.example
        self._tell(phase="running", run=run.folder, text=text, target=target)
        assert self._log is not None
        known = self._known()
        for event in run.events(cancel=CancelToken(), control=self.control):
            self._log.append(event)
            if known != self._known():
                known = self._known()
                self._tell()

    def _save(self, folder: Path | None) -> None:
        assert self._run is not None
        self._end(phase="finished", run=self._run.save(folder))

    def _way_out(self) -> str:
        """What can still be done for a run whose weights are not on disk."""
        has_unsaved = self._run is not None and self._run.has_unsaved
        return " What was learned is still here: see Train > Save again." if has_unsaved else ""

    def _end(self, **facts: Any) -> None:
        """Tell the end; only a run that could not be saved is kept, to be saved again."""
        known = self._known()
        if self._run is not None and not self._run.has_unsaved:
            self._run = None
        self._is_working = False
        self._tell(**known | facts)

    def _tell(self, **facts: Any) -> None:
        if not self._is_closing:
            self._report(self._known() | facts)

    def _known(self) -> dict[str, Any]:
        """What is known of the run at any time."""
        run = self._run
        if run is None:
            return {}
        return {"saved_step": run.saved_step, "problem": run.save_problem, "n_threads": run.training.n_threads}
