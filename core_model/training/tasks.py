"""What a small transformer can be trained to do. A new task is one row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from core_model.errors import TrainingError
from core_model.training.data import Ids, TrainingData
from core_model.training.symbol_data import SymbolData, Transform
from core_model.training.text_data import read_characters

MakeData: TypeAlias = Callable[[int, int, Path | None], TrainingData]
"""(length, seed, text file) -> the task's examples. Raises TrainingError when the text cannot be used."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task: with `encoder_decoder` a decoder writes what an encoder has read, else a decoder goes on by itself."""

    label: str
    summary: str
    encoder_decoder: bool
    make_data: MakeData
    needs_text: bool = False


def _symbol_task(label: str, summary: str, transform: Transform, *, encoder_decoder: bool) -> Task:
    """A task on random letters; `transform` says what is to be written."""

    def make_data(length: int, seed: int, text: Path | None) -> TrainingData:
        return SymbolData(transform, encoder_decoder=encoder_decoder, length=length, seed=seed)

    return Task(label=label, summary=summary, encoder_decoder=encoder_decoder, make_data=make_data)


def _same(symbols: Ids) -> Ids:
    return symbols


def _reversed(symbols: Ids) -> Ids:
    return symbols[::-1]


def _characters(length: int, seed: int, text: Path | None) -> TrainingData:
    if text is None:
        raise TrainingError("A language model needs a text to learn from: choose a text file.")
    return read_characters(text, length=length)


TASKS: dict[str, Task] = {
    "copy": _symbol_task(
        "Copy", "write the same letters again, after a bar: one decoder", _same, encoder_decoder=False
    ),
    "reverse": _symbol_task(
        "Reverse", "write the letters backwards: an encoder reads, a decoder writes", _reversed, encoder_decoder=True
    ),
    "sort": _symbol_task(
        "Sort",
        "write the letters in alphabetical order: an encoder reads, a decoder writes",
        np.sort,
        encoder_decoder=True,
    ),
    "language_model": Task(
        label="Language model",
        summary="predict the next character of a text file: one decoder",
        encoder_decoder=False,
        make_data=_characters,
        needs_text=True,
    ),
}
