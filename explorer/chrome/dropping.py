"""What is dropped on the window.

A checkpoint opens; a picture, a sound or a text file becomes the input; a text is the corpus where one trains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from core_model.errors import CoreError
from core_model.results import Reads
from explorer.state.app_state import AppState, OpenedModel
from explorer.state.given_file import kind_of
from explorer.state.moves import Move, give_file, open_source, set_inputs
from explorer.state.training_moves import set_corpus

_TEXT_SUFFIXES = {".txt", ".md", ".text"}
_LONGEST_TEXT = 4 << 20
"""Bytes."""
_READERS: dict[Reads, str] = {"picture": "ViT, DINOv2 or CLIP", "sound": "Whisper", "text": "GPT-2 or BERT"}
"""Models to try instead, by what was dropped."""


class DropError(CoreError):
    """Something dropped that is no checkpoint and nothing that the model reads."""


def drop_move(paths: Sequence[Path], state: AppState) -> Move:
    """What dropped paths ask for.

    Raises DropError for a text that cannot be read, for what the model does not read, and for more than one thing.
    """
    path = _one_of(paths)
    kind = kind_of(path) if path.is_file() else None
    if kind is not None:
        _require_reader(path, kind, state.current_model)
        return give_file(kind, path)
    if not (path.is_file() and path.suffix.lower() in _TEXT_SUFFIXES):
        return open_source(path)
    if state.layout == "train":
        return set_corpus(path)
    if state.current_model is not None:
        _require_reader(path, "text", state.current_model)
    return set_inputs(replace(state.inputs, text=_read_text(path)))


def _require_reader(path: Path, kind: Reads, model: OpenedModel | None) -> None:
    if model is not None and kind in model.reads:
        return
    unread = f"{model.info.name} does not read {kind}s; " if model else ""
    raise DropError(f"{path.name} is a {kind}: {unread}open a model that reads {kind}s, such as {_READERS[kind]}.")


def _one_of(paths: Sequence[Path]) -> Path:
    """The one path there is; the folder of several files that make up a checkpoint."""
    folders = {path.parent for path in paths}
    if len(paths) == 1:
        return paths[0]
    if len(folders) == 1 and any(path.suffix == ".safetensors" and path.is_file() for path in paths):
        return folders.pop()
    raise DropError(f"{len(paths)} things were dropped at once: drop one checkpoint, one folder or one file to read.")


def _read_text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > _LONGEST_TEXT:
            raise DropError(
                f"{path.name} has {size:,} bytes: a text up to {_LONGEST_TEXT:,} bytes can be dropped here."
            )
        return path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise DropError(
            f"{path.name} is not UTF-8 text (byte {error.start} is {error.object[error.start]:#04x}): save it as UTF-8."
        ) from error
    except OSError as error:
        raise DropError(f"{path.name} cannot be read: {error.strerror}.") from error
