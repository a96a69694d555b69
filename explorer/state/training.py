"""What the person wants to train, and what is known of the training that runs or ran last."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from core_model.training.events import ProbeAttention, TrainEvent
from core_model.training.settings import TrainingSettings, default_warmup, problems

Phase: TypeAlias = Literal["idle", "starting", "running", "paused", "stopping", "finished", "failed"]
BUSY: Final[frozenset[Phase]] = frozenset({"starting", "running", "paused", "stopping"})
"""Phases in which a training holds the thread."""


@dataclass(frozen=True, kw_only=True)
class TrainingDraft:
    """The form as it is filled in, right or wrong: (field of TrainingSettings, value) where it is not the default.

    A warmup that was not given follows the steps. `folder` is where runs are kept; None is the user's data folder.
    """

    changes: tuple[tuple[str, Any], ...] = ()
    folder: Path | None = None

    @property
    def values(self) -> dict[str, Any]:
        """Every field with its value."""
        given = dict(self.changes)
        return _DEFAULTS | {"warmup": default_warmup(given.get("steps", _DEFAULTS["steps"]))} | given

    @property
    def problems(self) -> dict[str, str]:
        """What keeps the training from starting: field -> one sentence."""
        return problems(self.values)

    def settings(self) -> TrainingSettings:
        """The settings to train with. Raises ConfigError while there are problems."""
        return TrainingSettings(**self.values)


_DEFAULTS: dict[str, Any] = {one.name: one.default for one in fields(TrainingSettings)}


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """What is known of the training: `run` is its folder, `saved_step` the last update that is on disk there.

    `text` and `target` are the example its attention is watched on. `problem` says why it failed, or the save due last
    did on the way, and what to do.
    """

    phase: Phase = "idle"
    settings: TrainingSettings | None = None
    run: Path | None = None
    text: str = ""
    target: str = ""
    n_threads: int | None = None
    saved_step: int | None = None
    problem: str = ""

    @property
    def is_busy(self) -> bool:
        """Whether a training is under way, paused or not."""
        return self.phase in BUSY


@dataclass(frozen=True, kw_only=True)
class WatchedHead:
    """Whose attention on the watched example is shown; `site` None is the last one the model has."""

    site: str | None = None
    layer: int = 0
    head: int = 0


Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingSnapshot:
    """Everything a running training has told so far, one entry an update; arrays are read-only.

    `last` is the latest event. Accuracy and probe are those measured last; loss_scale is NaN without scaling.
    """

    settings: TrainingSettings
    last: TrainEvent
    loss: Numbers
    learning_rate: Numbers
    grad_norm: Numbers
    loss_scale: Numbers
    tokens_per_second: Numbers
    accuracy_steps: Numbers = field(default_factory=lambda: np.zeros(0))
    accuracy: Numbers = field(default_factory=lambda: np.zeros(0))
    probe: ProbeAttention | None = None

    @property
    def steps(self) -> Numbers:
        """Numbers of the updates, from 1."""
        return np.arange(1, len(self.loss) + 1, dtype=np.float64)
