"""The learning-rate schedules as curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from core_model.training.schedules import SCHEDULES, make_schedule
from core_model.training.settings import problems
from explorer.state.training import Numbers
from explorer.viewmodels.records import CurvePicture, Series

_MOST_POINTS = 600
_RECIPE = ("steps", "warmup", "schedule", "peak_learning_rate", "d_model")
"""Fields a schedule is made of; what is wrong elsewhere in the form does not matter to it."""


def sampled_updates(n_updates: int, marked: int | None = None) -> Numbers:
    """Numbers of updates from 1 to the last, all of them or evenly chosen ones, and the marked one: what is read at a
    mark is of that update."""
    updates = np.linspace(1, n_updates, min(n_updates, _MOST_POINTS)).round()
    return updates if marked is None or not 1 <= marked <= n_updates else np.union1d(updates, [float(marked)])


def schedule_problem(values: Mapping[str, Any]) -> str:
    """What keeps the schedule of a training form from being drawn; "" when nothing does."""
    found = problems({name: values[name] for name in _RECIPE} | {"n_heads": 1})
    return next(iter(found.values()), "")


def peak_rate(values: Mapping[str, Any]) -> float:
    """The peak of a training form: the one given, else the article's (d_model warmup)^-0.5."""
    given = values["peak_learning_rate"]
    return (values["d_model"] * max(values["warmup"], 1)) ** -0.5 if given is None else given


def schedule_picture(values: Mapping[str, Any], step: int | None = None) -> CurvePicture:
    """All schedules with the steps, warmup and peak of a form without problems, the chosen one strong.

    `step` of a running training is marked.
    """
    updates = sampled_updates(values["steps"], step)
    return CurvePicture(
        series=tuple(_series(name, values, updates) for name in SCHEDULES),
        title=f"Learning rate: {SCHEDULES[values['schedule']].label}",
        x_title="update",
        y_title="learning rate",
        marker=None if step is None else float(step),
        marker_label="" if step is None else f"step {step}",
    )


def _series(name: str, values: Mapping[str, Any], updates: Numbers) -> Series:
    schedule = make_schedule(name, peak=peak_rate(values), warmup=values["warmup"], total=values["steps"])
    is_chosen = name == values["schedule"]
    return Series(
        name=SCHEDULES[name].label,
        x=updates,
        y=np.array([schedule(int(update)) for update in updates]),
        role=f"series_{1 + list(SCHEDULES).index(name)}",
        width=2.5 if is_chosen else 1.0,
    )
