"""A training and the folder it is kept in: saved while it runs, opened like any other checkpoint.

A run folder holds model.safetensors, config.json and the tokenizer, and run.json with the settings, the watched
example and the history of every update. It appears once all of that is written, later savings replace file by file,
and what else a person keeps in it stays.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core_model.cancel import CancelToken
from core_model.checkpoint.native import save_run_model
from core_model.checkpoint.run_record import RUN_FILE
from core_model.disk import existing_parent, free_bytes, why_not_written
from core_model.errors import TrainingError
from core_model.training.control import TrainControl
from core_model.training.data import TrainingData
from core_model.training.events import TrainEvent
from core_model.training.loop import Training
from core_model.training.marks import marked
from core_model.training.settings import TrainingSettings

VERSION = 1

_HISTORY = ("loss", "learning_rate", "grad_norm", "loss_scale", "tokens_per_second", "seconds")
_SPARE_BYTES = 1 << 20
"""Room for the tokenizer and the history beside the weights."""


@contextmanager
def claimed_run_folder(runs: Path, name: str) -> Iterator[Path]:
    """The first of name-1, name-2, ... that is not in `runs` yet, made now so that no other training takes it.

    Marked as under way during the block, gone after it if nothing was saved in it. Raises TrainingError where it cannot
    be made.
    """
    numbers = itertools.count(1)
    with ExitStack() as mark:
        try:
            runs.mkdir(parents=True, exist_ok=True)
            folder = next(path for path in (runs / f"{name}-{number}" for number in numbers) if _is_made(path))
            mark.enter_context(marked(folder))
        except OSError as error:
            raise TrainingError(f"No run can be kept in {runs}: {why_not_written(error, runs)}.") from error
        try:
            yield folder
        finally:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _is_made(folder: Path) -> bool:
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def _require_new(folder: Path) -> None:
    """Refuse a folder that holds something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise TrainingError(f"{folder} is there already and not empty: choose another folder for the run.")


class Run:
    """A training that is saved into a folder of its own. Made and run on one thread, off the UI thread."""

    def __init__(self, settings: TrainingSettings, folder: Path, data: TrainingData | None = None) -> None:
        """Raises TrainingError when the folder is taken or its disk has no room, and what `Training` raises."""
        _require_new(folder)
        self.training = Training(settings, data)
        self.folder = folder
        self.saved_step: int | None = None
        """The last update whose weights are on disk."""
        self.save_problem = ""
        """Why the save due last, on the way, failed; empty once one succeeded."""
        self._history: dict[str, list[float | None]] = {name: [] for name in _HISTORY}
        self._accuracy: list[tuple[int, float]] = []
        self._require_room()

    @property
    def n_steps_done(self) -> int:
        """Updates made so far."""
        return len(self._history["loss"])

    @property
    def example(self) -> tuple[str, str]:
        """The input and the target its attention is watched on, as text; no target where nothing decodes."""
        data = self.training.data
        return data.tokenizer.decode(data.probe.ids), data.tokenizer.decode(data.probe.decoder_ids or ())

    @property
    def has_unsaved(self) -> bool:
        """Whether there are updates worth saving that are not on disk."""
        return self.n_steps_done != (self.saved_step or 0) and self.training.is_sound

    def events(self, *, cancel: CancelToken, control: TrainControl) -> Iterator[TrainEvent]:
        """Train, and save every `save_every` updates and at the end, however it comes.

        Raises what `Training.run` raises, and what `save` raises at the end; one that fails on the way is told by
        `save_problem` and made up for by the next. After a failed save the weights are still here: free some room and
        call `save` again, or with another folder.
        """
        try:
            for event in self.training.run(cancel=cancel, control=control):
                self._remember(event)
                if event.step % self.training.settings.save_every == 0 and event.step < event.n_steps:
                    self._save_on_the_way()
                yield event
        except Exception as error:
            self._save_after(error)
            if isinstance(error, TrainingError):
                raise TrainingError(f"{error} {self._kept}") from error
            raise
        self.save()

    def save(self, folder: Path | None = None) -> Path:
        """Write the run as it is now into its folder, or into a new one from now on. Returns the folder.

        Raises TrainingError when it cannot be written, and for weights that are not sound; what was saved before is
        then still there.
        """
        target = folder or self.folder
        if folder is not None and folder != self.folder:
            _require_new(folder)
        if self.n_steps_done:
            if not self.training.is_sound:
                raise TrainingError(f"Step {self.n_steps_done} is not saved: its weights are not finite. {self._kept}")
            try:
                save_run_model(target, self.training.model, self.training.data.tokenizer, {RUN_FILE: self._record()})
            except OSError as error:
                why = why_not_written(error, target)
                raise TrainingError(
                    f"Step {self.n_steps_done} could not be saved in {target}: {why}. {self._kept}"
                ) from error
            self.saved_step, self.save_problem = self.n_steps_done, ""
        self.folder = target
        return target

    @property
    def _kept(self) -> str:
        """A sentence on what is on disk."""
        return "Nothing was saved." if self.saved_step is None else f"Step {self.saved_step} is kept in {self.folder}."

    def _save_on_the_way(self) -> None:
        """Save, if it can be: by the next time there may be room again, or the file no longer be held open."""
        try:
            self.save()
        except TrainingError as error:
            self.save_problem = str(error)

    def _save_after(self, error: Exception) -> None:
        """Save what an error has left. Raises TrainingError that tells both where that fails too."""
        try:
            if self.has_unsaved:
                self.save()
        except Exception as refused:
            raise TrainingError(f"{str(error) or type(error).__name__} {refused}") from error

    def _remember(self, event: TrainEvent) -> None:
        for name, values in self._history.items():
            value = getattr(event, name)
            values.append(value if value is not None and math.isfinite(value) else None)
        if event.accuracy is not None:
            self._accuracy.append((event.step, event.accuracy))

    def _record(self) -> dict[str, Any]:
        """What run.json says; a gradient norm that was infinite and a loss scale that was not used are null there."""
        text, target = self.example
        settings = asdict(self.training.settings) | {"text": str(self.training.settings.text or "") or None}
        return {
            "version": VERSION,
            "settings": settings,
            "threads": self.training.n_threads,
            "example": {"text": text, "target": target},
            "history": self._history,
            "accuracy": self._accuracy,
        }

    def _require_room(self) -> None:
        """Refuse to start where the run cannot be saved: old and new weights stand side by side for a moment."""
        existing = existing_parent(self.folder)
        if not existing.is_dir() or not os.access(existing, os.W_OK):
            raise TrainingError(f"Nothing can be written into {existing}: choose another folder for the run.")
        needed = 2 * sum(parameter.nbytes for parameter in self.training.model.parameters()) + _SPARE_BYTES
        free = free_bytes(existing)
        if free < needed:
            raise TrainingError(
                f"{self.folder} has {free / 2**20:.0f} MiB free, and saving the run takes {needed / 2**20:.0f} MiB: "
                "free some room or choose another folder."
            )
