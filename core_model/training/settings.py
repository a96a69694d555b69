"""Everything a training depends on, as one frozen record that checks itself field by field. No torch here."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

from core_model.errors import ConfigError
from core_model.training.schedules import SCHEDULES, Schedule, make_schedule
from core_model.training.symbol_data import SHORTEST
from core_model.training.tasks import TASKS

POSITIONS: dict[str, str] = {
    "sinusoidal": "sines and cosines, added to the embeddings",
    "learned": "a learned vector for each position",
    "rotary": "rotation of queries and keys",
    "alibi": "score penalty by distance",
    "bucketed": "learned score bias by distance",
    "none": "none",
}
Initialization: TypeAlias = Literal["xavier_uniform", "xavier_normal", "normal", "gpt2", "zero_output"]
INITIALIZATIONS: dict[Initialization, str] = {
    "xavier_uniform": "Xavier uniform",
    "xavier_normal": "Xavier normal",
    "normal": "normal, 0.02",
    "gpt2": "normal, 0.02, residual writers scaled by depth",
    "zero_output": "Xavier uniform, residual writers zero",
}
NORM_ORDERS: dict[str, str] = {"pre": "before each sublayer", "post": "after each sublayer, as the article"}
PRECISIONS: dict[str, str] = {
    "fp32": "float32",
    "bf16": "mixed bfloat16",
    "fp16": "mixed float16 with loss scaling",
}


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """One training, whole: the same settings, `threads` among them, on the same machine give the same losses.

    `length` counts symbols of the longest example, or tokens of a text window. `peak_learning_rate` None means the
    article's (d_model warmup)^-0.5, for inverse_sqrt only. `threads` None: chosen by timing the first updates, so
    losses may differ in their last digits. Every `watch_every` updates attention and held-out accuracy are measured,
    every `save_every` accuracy is, and the run is saved.
    Raises ConfigError with the first of `problems`.
    """

    task: str = "reverse"
    text: Path | None = None
    d_model: int = 64
    n_layers: int = 2
    n_heads: int = 4
    d_hidden: int = 256
    norm: Literal["pre", "post"] = "pre"
    positions: str = "sinusoidal"
    dropout: float = 0.0
    initialization: Initialization = "xavier_uniform"
    steps: int = 2000
    batch: int = 64
    length: int = 12
    schedule: str = "inverse_sqrt"
    warmup: int = 200
    peak_learning_rate: float | None = 2e-3
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    weight_decay: float = 0.0
    clip: float | None = 1.0
    precision: str = "fp32"
    device: str = "cpu"
    threads: int | None = None
    seed: int = 0
    watch_every: int = 20
    save_every: int = 500

    def __post_init__(self) -> None:
        for message in problems({field.name: getattr(self, field.name) for field in fields(self)}).values():
            raise ConfigError(message)

    @property
    def learning_rate(self) -> Schedule:
        """The learning rate of every update, counted from 1."""
        if self.peak_learning_rate is None:
            return make_schedule(self.schedule, warmup=self.warmup, total=self.steps, d_model=self.d_model)
        return make_schedule(self.schedule, peak=self.peak_learning_rate, warmup=self.warmup, total=self.steps)


def default_warmup(steps: int) -> int:
    """Updates of warmup where none are given: the default, a tenth of shorter runs."""
    return min(TrainingSettings.warmup, max(0, steps // 10))


def problems(values: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with settings before a record is made of them, field -> one sentence; absent ones have defaults."""
    complete = {field.name: field.default for field in fields(TrainingSettings)} | dict(values)
    found = {name: message for name, check in _CHECKS.items() if (message := check(name, complete))}
    return found | {
        name: message
        for name, (check, others) in _TOGETHER.items()
        if found.keys().isdisjoint((name, *others)) and (message := check(name, complete))
    }


_Check: TypeAlias = Callable[[str, Mapping[str, Any]], str | None]


def _count(least: int, most: int | None = None) -> _Check:
    """A whole number within limits."""
    limit = f"of at least {least}" if most is None else f"from {least} to {most}"

    def check(name: str, values: Mapping[str, Any]) -> str | None:
        value = values[name]
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if is_whole and value >= least and (most is None or value <= most):
            return None
        return f"{name} is {value!r}: it must be a whole number {limit}"

    return check


def _number(least: float, below: float = math.inf, *, above: bool = False) -> _Check:
    """A finite number from `least` (or `above` it) to below a limit."""
    limit = f"{'above' if above else 'at least'} {least:g}" + ("" if math.isinf(below) else f" and below {below:g}")

    def check(name: str, values: Mapping[str, Any]) -> str | None:
        value = values[name]
        is_real = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if is_real and (value > least if above else value >= least) and value < below:
            return None
        return f"{name} is {value!r}: it must be a finite number {limit}"

    return check


def _optional(check: _Check) -> _Check:
    """None is right too."""
    return lambda name, values: None if values[name] is None else check(name, values)


def _choice(known: Collection[str]) -> _Check:
    def check(name: str, values: Mapping[str, Any]) -> str | None:
        return None if values[name] in known else f"{name} is {values[name]!r}: it must be one of {', '.join(known)}"

    return check


def _betas(name: str, values: Mapping[str, Any]) -> str | None:
    if isinstance(values[name], tuple) and len(values[name]) == 2 and all(0 <= beta < 1 for beta in values[name]):
        return None
    return f"{name} is {values[name]!r}: it must be two numbers of at least 0 and below 1"


_CHECKS: dict[str, _Check] = {
    "task": _choice(TASKS),
    "d_model": _count(2, 4096),
    "n_layers": _count(1, 64),
    "n_heads": _count(1, 128),
    "d_hidden": _count(1, 65536),
    "norm": _choice(NORM_ORDERS),
    "positions": _choice(POSITIONS),
    "dropout": _number(0, 1),
    "initialization": _choice(INITIALIZATIONS),
    "steps": _count(1),
    "batch": _count(1, 65536),
    "length": _count(SHORTEST, 8192),
    "schedule": _choice(SCHEDULES),
    "warmup": _count(0),
    "peak_learning_rate": _optional(_number(0, above=True)),
    "betas": _betas,
    "eps": _number(0, above=True),
    "weight_decay": _number(0),
    "clip": _optional(_number(0, above=True)),
    "precision": _choice(PRECISIONS),
    "threads": _optional(_count(1)),
    "seed": _count(0, 2**63 - 1),
    "watch_every": _count(1),
    "save_every": _count(1),
}


def _text(name: str, values: Mapping[str, Any]) -> str | None:
    if values[name] is not None or not TASKS[values["task"]].needs_text:
        return None
    return f"{name} is missing: {values['task']} learns from a text file, so choose one"


def _divisible(name: str, values: Mapping[str, Any]) -> str | None:
    if values["d_model"] % values[name] == 0:
        return None
    return f"{name} is {values[name]}: d_model, {values['d_model']}, must be a multiple of it"


def _even_heads(name: str, values: Mapping[str, Any]) -> str | None:
    if values[name] != "rotary" or (values["d_model"] // values["n_heads"]) % 2 == 0:
        return None
    return (
        f"{name} is 'rotary': it turns pairs of dimensions, so a head must have an even number of them, "
        f"not {values['d_model'] // values['n_heads']}"
    )


def _fits(name: str, values: Mapping[str, Any]) -> str | None:
    if values[name] <= values["steps"]:
        return None
    return f"{name} is {values[name]}: it must end within the {values['steps']} steps of the run"


def _article_peak(name: str, values: Mapping[str, Any]) -> str | None:
    if values[name] is not None or values["schedule"] == "inverse_sqrt":
        return None
    return (
        f"{name} is missing: only inverse_sqrt has one of its own, so give the {values['schedule']} schedule a number"
    )


_TOGETHER: dict[str, tuple[_Check, tuple[str, ...]]] = {
    "text": (_text, ("task",)),
    "n_heads": (_divisible, ("d_model",)),
    "positions": (_even_heads, ("d_model", "n_heads")),
    "warmup": (_fits, ("steps",)),
    "peak_learning_rate": (_article_peak, ("schedule",)),
}
"""Checks that look at other fields too: made once all of them are right by themselves."""
