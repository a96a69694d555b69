"""What a run folder says of its training, read without torch."""

from __future__ import annotations

from pathlib import Path

import msgspec

from core_model.checkpoint.files import open_regular
from core_model.errors import CheckpointError
from core_model.results import RunInfo
from core_model.wording import shown

RUN_FILE = "run.json"
_MAX_BYTES = 256 << 20
"""The history of more than a million updates."""


class _Settings(msgspec.Struct):
    steps: int


class _History(msgspec.Struct):
    loss: list[float | None]


class _Example(msgspec.Struct):
    text: str = ""
    target: str = ""


class _Record(msgspec.Struct):
    settings: _Settings
    history: _History
    example: _Example = msgspec.field(default_factory=_Example)


def read_run(folder: Path) -> RunInfo | None:
    """How far the run in this folder has come; None where it has no run.json. CheckpointError when that is damaged."""
    path = folder / RUN_FILE
    if not path.exists():
        return None
    with open_regular(path) as file:
        text = file.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise CheckpointError(f"{RUN_FILE} is larger than {_MAX_BYTES} bytes: how far it came is not told", path=path)
    try:
        record = msgspec.json.decode(text, type=_Record)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        told = f"{RUN_FILE} is damaged ({shown(error)}): how far the training came is not told"
        raise CheckpointError(told, path=path) from error
    return RunInfo(
        step=len(record.history.loss),
        n_steps=record.settings.steps,
        text=record.example.text,
        target=record.example.target,
    )
