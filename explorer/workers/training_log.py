"""The numbers of a training, appended by its thread and read by the window at any time."""

from __future__ import annotations

import numpy as np

from core_model.training.events import ProbeAttention, TrainEvent
from core_model.training.settings import TrainingSettings
from explorer.state.training import Numbers, TrainingSnapshot

_COLUMNS = ("loss", "learning_rate", "grad_norm", "loss_scale", "tokens_per_second")
_FIRST_ROOM = 1024


class TrainingLog:
    """One writer, any readers, no lock: what was written is never changed, and its length is published last."""

    def __init__(self, settings: TrainingSettings) -> None:
        self._settings = settings
        self._table = np.empty((len(_COLUMNS), _FIRST_ROOM))
        self._accuracy: tuple[Numbers, Numbers] = (np.zeros(0), np.zeros(0))
        self._probe: ProbeAttention | None = None
        self._last: TrainEvent | None = None

    def append(self, event: TrainEvent) -> None:
        """Add an update. The training's thread."""
        index = event.step - 1
        if index == self._table.shape[1]:
            self._table = np.concatenate([self._table, np.empty_like(self._table)], axis=1)
        for row, name in enumerate(_COLUMNS):
            value = getattr(event, name)
            self._table[row, index] = np.nan if value is None else value
        if event.accuracy is not None:
            steps, accuracy = self._accuracy
            self._accuracy = np.append(steps, event.step), np.append(accuracy, event.accuracy)
        self._probe = event.probe or self._probe
        self._last = event

    @property
    def last(self) -> TrainEvent | None:
        """The latest update; None before the first. Any thread."""
        return self._last

    def snapshot(self) -> TrainingSnapshot | None:
        """Everything up to the latest update, without copying; None before the first. Any thread."""
        last = self._last
        if last is None:
            return None
        columns = self._table[:, : last.step]
        columns.flags.writeable = False
        steps, accuracy = self._accuracy
        return TrainingSnapshot(
            settings=self._settings,
            last=last,
            **dict(zip(_COLUMNS, columns, strict=True)),
            accuracy_steps=steps,
            accuracy=accuracy,
            probe=self._probe,
        )
