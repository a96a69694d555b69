"""The fields of the training form: what they are called, what they do, what can be chosen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from core_model.training.schedules import SCHEDULES
from core_model.training.settings import INITIALIZATIONS, NORM_ORDERS, POSITIONS, PRECISIONS
from core_model.training.tasks import TASKS
from explorer.state.answers import TrainingOptions
from explorer.state.training import TrainingDraft
from explorer.viewmodels.schedule import peak_rate, schedule_problem

EditorKind: TypeAlias = Literal["choice", "count", "number", "file"]


@dataclass(frozen=True, kw_only=True)
class FormField:
    """One line of the form. `name` is the field of TrainingSettings; `choices` are (value, label)."""

    name: str
    label: str
    tooltip: str
    kind: EditorKind
    unit: str = ""
    choices: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class FormGroup:
    """Fields that belong together."""

    title: str
    fields: tuple[FormField, ...]


def _choice(name: str, label: str, tooltip: str, choices: Mapping[Any, str]) -> FormField:
    return FormField(name=name, label=label, tooltip=tooltip, kind="choice", choices=tuple(choices.items()))


def _count(name: str, label: str, tooltip: str, unit: str = "") -> FormField:
    return FormField(name=name, label=label, tooltip=tooltip, kind="count", unit=unit)


def _number(name: str, label: str, tooltip: str) -> FormField:
    return FormField(name=name, label=label, tooltip=tooltip, kind="number")


_POSITIONS: Final = {
    "sinusoidal": "Sinusoidal",
    "learned": "Learned",
    "rotary": "Rotary",
    "alibi": "ALiBi",
    "bucketed": "Relative bias",
    "none": "None",
}
_NORM_ORDERS: Final = {"pre": "Before", "post": "After"}
_INITIALIZATIONS: Final = {
    "xavier_uniform": "Xavier uniform",
    "xavier_normal": "Xavier normal",
    "normal": "Normal",
    "gpt2": "GPT-2",
    "zero_output": "Zero output",
}
_PRECISIONS: Final = {"fp32": "fp32", "bf16": "bf16", "fp16": "fp16"}
SCHEDULE_NAMES: Final = {
    "inverse_sqrt": "Inverse square root",
    "linear": "Linear",
    "cosine": "Cosine",
    "constant": "Constant",
}
MEANINGS: Final[dict[str, Mapping[Any, str]]] = {
    "task": {key: task.summary for key, task in TASKS.items()},
    "positions": POSITIONS,
    "norm": NORM_ORDERS,
    "initialization": INITIALIZATIONS,
    "precision": PRECISIONS,
    "schedule": {key: kind.label for key, kind in SCHEDULES.items()},
}
"""What each choice is, by field."""

FORM: Final[tuple[FormGroup, ...]] = (
    FormGroup(
        title="Task",
        fields=(
            _choice("task", "Task", "What the model learns to do.", {key: task.label for key, task in TASKS.items()}),
            FormField(name="text", label="Text", tooltip="The UTF-8 text file to learn from.", kind="file"),
            _count("length", "Length", "Letters of the longest example, or characters of a text window.", "tokens"),
            _count("batch", "Batch", "Examples an update is computed from."),
            _count("steps", "Steps", "Updates of the whole training."),
            _count(
                "seed",
                "Seed",
                "The same seed gives the same examples and first weights, and with as many threads the same losses.",
            ),
        ),
    ),
    FormGroup(
        title="Model",
        fields=(
            _count("d_model", "Width", "Width of the residual stream, d_model."),
            _count("n_layers", "Layers", "Layers of the decoder, and of the encoder where the task has one."),
            _count("n_heads", "Heads", "Attention heads of a layer; they share the width, so it must be a multiple."),
            _count("d_hidden", "Feed-forward", "Width of the feed-forward network between its two linear maps."),
            _choice("positions", "Positions", "How the model knows the order of its tokens.", _POSITIONS),
            _choice("norm", "Layer norm", "Where layer normalisation stands around each sublayer.", _NORM_ORDERS),
            _choice("initialization", "First weights", "How the weights are drawn before training.", _INITIALIZATIONS),
            _number("dropout", "Dropout", "Share of activations set to zero in training: at least 0 and below 1."),
        ),
    ),
    FormGroup(
        title="Learning rate",
        fields=(
            _choice("schedule", "Schedule", "How the learning rate rises and falls.", SCHEDULE_NAMES),
            _count("warmup", "Warmup", "Updates in which the learning rate rises to its peak."),
            _number(
                "peak_learning_rate",
                "Peak",
                "The largest learning rate; empty takes the article's, (width x warmup)^-0.5, where it has one.",
            ),
            _number("weight_decay", "Weight decay", "How fast AdamW draws matrices towards zero."),
            _number("clip", "Clip norm", "Gradients longer than this are shortened to it; empty leaves them."),
        ),
    ),
    FormGroup(
        title="Machine",
        fields=(
            _choice("device", "Device", "Where the training runs.", {"cpu": "CPU"}),
            _choice("precision", "Precision", "Number format of the forward pass.", _PRECISIONS),
        ),
    ),
)

_WORDS: Final[dict[str, str]] = {
    **{field.name: field.label.lower() for group in FORM for field in group.fields},
    **{key: task.label.lower() for key, task in TASKS.items()},
    **{key: label.lower() for key, label in SCHEDULE_NAMES.items()},
}
"""What the form calls what settings have keys for."""
_KEY: Final = re.compile(r"\b(" + "|".join(key for key in _WORDS if "_" in key) + r")\b")
"""The keys that people would not take for words."""


def device_choices(options: TrainingOptions) -> tuple[tuple[str, str], ...]:
    """The devices this machine has."""
    return tuple((device.key, device.label) for device in options.devices)


def precision_choices(options: TrainingOptions, device: str) -> tuple[tuple[str, str], ...]:
    """The precisions that device can train in."""
    found = next((one.precisions for one in options.devices if one.key == device), ())
    return tuple((name, _PRECISIONS[name]) for name in found)


def field_errors(draft: TrainingDraft) -> dict[str, str]:
    """What is wrong at each field, in the words of the form and without the field's name, which stands beside it."""
    return {name: _in_form_words(message) for name, message in draft.problems.items()}


def first_problem(draft: TrainingDraft) -> str:
    """What keeps the training from starting, with the field's name; empty where nothing does."""
    errors = field_errors(draft)
    labels = (field for group in FORM for field in group.fields if field.name in errors)
    return next((f"{field.label}: {errors[field.name]}." for field in labels), "")


def field_hints(draft: TrainingDraft) -> dict[str, str]:
    """A remark at a field."""
    values = draft.values
    hints: dict[str, str] = {}
    if values["peak_learning_rate"] is None and not schedule_problem(values):
        hints["peak_learning_rate"] = f"peak {peak_rate(values):.3g} after {max(values['warmup'], 1)} updates"
    if values["precision"] == "fp16" and values["device"] == "cpu":
        hints["precision"] = "slow on a CPU; shows loss scaling"
    return hints


def task_summary(draft: TrainingDraft) -> str:
    """What the chosen task is, as a sentence."""
    task = TASKS.get(draft.values["task"])
    return "" if task is None else f"{task.summary[:1].upper()}{task.summary[1:]}."


def needs_text(draft: TrainingDraft) -> bool:
    """Whether the task learns from a text file."""
    task = TASKS.get(draft.values["task"])
    return task is not None and task.needs_text


def _in_form_words(message: str) -> str:
    """ "n_heads is 5: d_model, 64, must be ..." -> "Width, 64, must be ..."."""
    text = _KEY.sub(lambda found: _WORDS[found[0]], message.partition(": ")[2] or message)
    return text[:1].upper() + text[1:]
