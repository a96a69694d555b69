"""train: a small transformer on one of the tasks, saved as a run folder that opens like any other checkpoint."""

from __future__ import annotations

import argparse
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from core_model.cancel import CancelToken
from core_model.errors import ConfigError
from core_model.training.control import TrainControl
from core_model.training.schedules import SCHEDULES
from core_model.training.settings import (
    INITIALIZATIONS,
    NORM_ORDERS,
    POSITIONS,
    PRECISIONS,
    TrainingSettings,
    default_warmup,
    problems,
)
from core_model.training.tasks import TASKS
from explorer.verbs.progress import ProgressLine

if TYPE_CHECKING:
    from core_model.training.events import TrainEvent

_PLAIN_LINES = 20
"""Lines of a whole run where nobody watches."""

_EPILOG = """\
The run folder holds the model (safetensors), its tokenizer, and run.json with the settings and the history.
Open it with 'transformer-explorer open RUN'.
Ctrl-C or SIGTERM ends the training after the current update, saves what was learned and says where.

examples:
  transformer-explorer train --task reverse --steps 2000 --out runs/reverse
  transformer-explorer train --task language_model --text book.txt --steps 5000 --length 128 --layers 4 --out runs/book
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = TrainingSettings()
    parser.usage = "%(prog)s --task TASK --out RUN [options]"
    parser.description = "Train a small transformer from scratch."
    parser.epilog = _EPILOG
    parser.add_argument("--out", type=Path, required=True, metavar="RUN", help="folder for the run; new or empty")

    def option(group: Any, field: str, type: Callable[[str], Any], text: str, **extra: Any) -> None:
        text += "" if "required" in extra else " (default: %(default)s)"
        group.add_argument(_flag(field), dest=field, type=type, default=getattr(defaults, field), help=text, **extra)

    task = parser.add_argument_group("task")
    task.add_argument("--task", required=True, choices=TASKS, help=_listed({k: t.summary for k, t in TASKS.items()}))
    task.add_argument("--text", type=Path, metavar="FILE", help="UTF-8 text that language_model learns from")
    option(task, "length", int, "symbols of the longest example, or tokens of a text window", metavar="N")
    model = parser.add_argument_group("model")
    option(model, "d_model", int, "width of the residual stream", metavar="N")
    option(model, "n_layers", int, "layers, of the encoder and of the decoder", metavar="N")
    option(model, "n_heads", int, "attention heads of a layer", metavar="N")
    option(model, "d_hidden", int, "width of the feed-forward layers", metavar="N")
    option(model, "norm", str, _listed(NORM_ORDERS), choices=NORM_ORDERS)
    option(model, "positions", str, _listed(POSITIONS), choices=POSITIONS)
    option(model, "dropout", float, "rate", metavar="P")
    option(model, "initialization", str, _listed(INITIALIZATIONS), choices=INITIALIZATIONS)
    rate = parser.add_argument_group("optimisation (AdamW)")
    option(rate, "steps", int, "updates", metavar="N")
    option(rate, "batch", int, "examples an update", metavar="N")
    option(rate, "schedule", str, "of the learning rate, after the warmup", choices=SCHEDULES)
    rate.add_argument(
        "--warmup", type=int, metavar="N", help=f"updates (default: {defaults.warmup}, a tenth of shorter runs)"
    )
    option(
        rate, "peak_learning_rate", _number_or_none,
        "at the end of the warmup; 'none' takes the article's, with inverse_sqrt", metavar="RATE",
    )  # fmt: skip
    option(rate, "weight_decay", float, "of matrices", metavar="RATE")
    option(rate, "clip", _number_or_none, "largest gradient norm; 'none' for any", metavar="NORM")
    machine = parser.add_argument_group("machine")
    option(machine, "precision", str, _listed(PRECISIONS), choices=PRECISIONS)
    option(machine, "device", str, "cpu, cuda, cuda:1 or mps", metavar="NAME")
    machine.add_argument("--threads", type=int, metavar="N", help="of the CPU (default: the first updates are timed)")
    option(machine, "seed", int, "the same seed and --threads give the same run", metavar="N")
    option(machine, "save_every", int, "updates between savings", metavar="N")


def _flag(field: str) -> str:
    """The option that gives a field of the settings."""
    return f"--{field.removeprefix('n_').replace('_', '-')}"


def _listed(labels: Mapping[Any, str]) -> str:
    return "; ".join(f"{name}: {label}" for name, label in labels.items()).replace("%", "%%")


def _number_or_none(text: str) -> float | None:
    return None if text == "none" else float(text)


def run(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    from core_model.training.runs import Run  # torch, once the settings are known to be right

    run = Run(settings, arguments.out)
    control = TrainControl()
    last: TrainEvent | None = None
    told = ""
    with ProgressLine(f"train {settings.task}") as line, _stopped_by_signals(control, line) as received:
        plain_every = max(1, settings.steps // _PLAIN_LINES)
        for event in run.events(cancel=CancelToken(), control=control):
            last = event if last is None or event.accuracy is not None else _keep_accuracy(event, last)
            line.show(event.step / event.n_steps, _words(last))
            if run.save_problem != told:
                told = run.save_problem
                line.note(told or f"step {run.saved_step} is saved")
            if not line.is_live and (event.step % plain_every == 0 or event.step == event.n_steps):
                line.note(f"step {event.step} of {event.n_steps}, {_words(last)}")
    print(f"{run.folder}: {_ending(control, last)}")
    return 128 + received[0] if received else 0


def _settings(arguments: argparse.Namespace) -> TrainingSettings:
    """The settings that the arguments make. Raises ConfigError naming the option that is wrong."""
    given = {
        field.name: getattr(arguments, field.name) for field in fields(TrainingSettings) if field.name in arguments
    }
    if given["warmup"] is None:
        given["warmup"] = default_warmup(given["steps"])
    if found := problems(given):
        raise ConfigError(_in_options(*next(iter(found.items()))))
    return TrainingSettings(**given)


def _in_options(field: str, message: str) -> str:
    """ "n_heads is 5: d_model, 64, must be ..." -> "--heads is 5: --d-model, 64, must be ..."."""
    others = "|".join(known.name for known in fields(TrainingSettings) if "_" in known.name)
    told = re.sub(rf"\b({others})\b", lambda found: _flag(found[0]), message.removeprefix(field))
    return f"{_flag(field)}{told}"


def _keep_accuracy(event: TrainEvent, before: TrainEvent) -> TrainEvent:
    """The event with the accuracy that was measured last."""
    return replace(event, accuracy=before.accuracy)


def _words(event: TrainEvent) -> str:
    accuracy = "" if event.accuracy is None else f", accuracy {event.accuracy:.1%}"
    speed = f"{event.tokens_per_second:,.0f} tokens/s"
    return f"loss {event.loss:.4f}{accuracy}, learning rate {event.learning_rate:.2e}, {speed}"


def _ending(control: TrainControl, last: TrainEvent | None) -> str:
    if last is None:
        return "stopped before the first update; nothing was saved"
    state = "stopped and saved" if control.stopped else "trained and saved"
    return f"{state} after step {last.step} of {last.n_steps}, {_words(last)}"


@contextmanager
def _stopped_by_signals(control: TrainControl, line: ProgressLine) -> Iterator[list[int]]:
    """The first Ctrl-C or SIGTERM ends the training before its next update, the second acts at once.

    Yields the signals that came.
    """
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, handlers[number])
        control.stop()
        again = "Ctrl-C again" if number == signal.SIGINT else "the signal again"
        line.note(f"stopping after this update; {again} ends at once")

    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in handlers:
        signal.signal(number, stop)
    try:
        yield received
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
