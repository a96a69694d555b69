"""Learning-rate schedules: the rate of every update, counted from 1, as a pure function.

All warm up linearly, so no update ever has rate 0. `inverse_sqrt` reaches its peak at update `warmup`, as the article
does. The others warm up by u / (warmup + 1), so the first update after the warmup has the peak; with warmup 0 that is
update 1, and with warmup equal to total the run ends one update short of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from core_model.errors import ConfigError

Schedule: TypeAlias = Callable[[int], float]
"""The learning rate of an update, given its number from 1."""


def _inverse_sqrt(update: int, warmup: int, total: int | None) -> float:
    """Vaswani et al. 2017, eq. 3, divided by its largest value: min(u / w, sqrt(w / u))."""
    turn = max(warmup, 1)
    return min(update / turn, math.sqrt(turn / update))


def _constant(update: int, warmup: int, total: int | None) -> float:
    return min(update / (warmup + 1), 1.0)


def _decay_progress(update: int, warmup: int, total: int | None) -> float:
    """How much of the decay lies before this update: 0 for the first after the warmup, 1 for any after the last."""
    assert total is not None
    return 1.0 if update > total else (update - warmup - 1) / (total - warmup)


def _linear(update: int, warmup: int, total: int | None) -> float:
    if update <= warmup:
        return update / (warmup + 1)
    return 1.0 - _decay_progress(update, warmup, total)


def _cosine(update: int, warmup: int, total: int | None) -> float:
    """Half a cosine from 1 towards 0 (Loshchilov and Hutter 2017, eq. 5, without restarts)."""
    if update <= warmup:
        return update / (warmup + 1)
    return 0.5 * (1.0 + math.cos(math.pi * _decay_progress(update, warmup, total)))


@dataclass(frozen=True, kw_only=True)
class ScheduleKind:
    """One shape of schedule: `factor(update, warmup, total)` is the share of the peak; `ends` if it needs the total."""

    label: str
    summary: str
    factor: Callable[[int, int, int | None], float]
    ends: bool = False


SCHEDULES: dict[str, ScheduleKind] = {
    "inverse_sqrt": ScheduleKind(
        label="warmup, then inverse square root",
        summary="rises to the peak at the end of the warmup, then falls with 1/sqrt(update): the original recipe",
        factor=_inverse_sqrt,
    ),
    "linear": ScheduleKind(
        label="warmup, then linear to zero",
        summary="rises to the peak, then falls in a straight line that would be zero one update after the last",
        factor=_linear,
        ends=True,
    ),
    "cosine": ScheduleKind(
        label="warmup, then cosine to zero",
        summary="rises to the peak, then falls along half a cosine that would be zero one update after the last",
        factor=_cosine,
        ends=True,
    ),
    "constant": ScheduleKind(
        label="warmup, then constant",
        summary="rises to the peak and stays there",
        factor=_constant,
    ),
}


def make_schedule(
    name: str, *, peak: float = 1.0, warmup: int, total: int | None = None, d_model: int | None = None
) -> Schedule:
    """The schedule of that name: a function from the number of the update, counted from 1, to its learning rate.

    `warmup` and `total` count updates; linear and cosine need `total`. With `d_model`, inverse_sqrt is the article's
    d_model^-0.5 min(u^-0.5, u warmup^-1.5) (Vaswani et al. 2017, eq. 3) times `peak`.
    Raises ConfigError for a name, a number or a combination that has no meaning.
    """
    kind = SCHEDULES.get(name)
    if kind is None:
        raise ConfigError(f"schedule is {name!r}: it must be one of {', '.join(SCHEDULES)}")
    if not math.isfinite(peak) or peak <= 0:
        raise ConfigError(f"peak is {peak!r}: the learning rate must be a finite number above 0")
    if warmup < 0:
        raise ConfigError(f"warmup is {warmup}: it must be 0 or more updates")
    if total is not None and not 1 <= total >= warmup:
        raise ConfigError(
            f"total is {total} and warmup is {warmup}: there must be an update, and warmup must fit into them"
        )
    if kind.ends and total is None:
        raise ConfigError(f"total is missing: the {name} schedule needs the number of updates to know where it ends")
    if d_model is not None:
        if name != "inverse_sqrt" or d_model < 1:
            raise ConfigError(f"d_model is {d_model}: only inverse_sqrt takes it, and it must be at least 1")
        peak *= (d_model * max(warmup, 1)) ** -0.5

    def learning_rate(update: int) -> float:
        if update < 1:
            raise ConfigError(f"update is {update}: updates are counted from 1")
        return peak * kind.factor(update, warmup, total)

    return learning_rate
