"""Everything that can go wrong in a way its user can act on.

The text of a `CoreError` names the file or field, the value found, what was expected, and the next step. Any other
exception is a bug of ours.
"""

from __future__ import annotations

from pathlib import Path

from core_model.wording import printable


class CoreError(Exception):
    """A problem the user can act on; its text is one line, shown as it is, whatever a file made it quote."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


class ConfigError(CoreError):
    """A model description that contradicts itself or lies outside its limits."""


class CheckpointError(CoreError):
    """A checkpoint that cannot be opened, read, loaded or written."""

    def __init__(self, message: str, *, path: Path | None = None, tensor: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.tensor = tensor


class PickleError(CheckpointError):
    """A pickle, which is not opened as it is; it may be converted."""


class TokenizerError(CoreError):
    """A tokenizer that cannot be read, or text it cannot turn into ids of the model."""


class InputError(CoreError):
    """A picture or a sound that cannot be read, or that is not what the model reads."""


class TraceError(CoreError):
    """Inputs or a request the loaded model cannot compute."""


class TrainingError(CoreError):
    """Training that cannot start, go on or be saved."""


class Cancelled(CoreError):
    """The caller asked for the work to stop."""
