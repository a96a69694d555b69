"""What is dropped on the window: a checkpoint opens, a text file becomes the input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core_model.errors import CoreError
from explorer.state.app_state import AppState
from explorer.state.moves import Move, open_source

_TEXT_SUFFIXES = {".txt", ".md", ".text"}
_LONGEST_TEXT = 4 << 20


class DropError(CoreError):
    """Something dropped that is neither a checkpoint nor a text."""


def drop_move(path: Path, state: AppState) -> Move:
    """What a dropped path asks for. Raises DropError for a text file that cannot be read as text."""
    if path.is_file() and path.suffix.lower() in _TEXT_SUFFIXES:
        inputs = replace(state.inputs, text=_read_text(path))
        return lambda now: replace(now, inputs=inputs, selection=replace(now.selection, cell=None), hover=None)
    return open_source(path)


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
