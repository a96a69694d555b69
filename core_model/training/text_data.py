"""Examples of a language model: windows of a text, each token to be predicted from those before it."""

from __future__ import annotations

from io import TextIOWrapper
from pathlib import Path

import numpy as np

from core_model.checkpoint.files import open_regular
from core_model.config import SpecialTokens
from core_model.errors import CheckpointError, TrainingError
from core_model.tokenize.native import CharacterTokenizer
from core_model.training.data import N_HELD_OUT, Batch, Example, Ids, RunTokenizer

HELD_OUT_SHARE = 0.1
"""The last tenth of the text is never trained on."""
PROBE_TOKENS = 48
"""The watched example is short enough for all its heads to be drawn while training goes on."""


class TextData:
    """Windows of `length` tokens of a tokenized text, at random places before its last tenth."""

    def __init__(self, ids: Ids, tokenizer: RunTokenizer, *, length: int, name: str) -> None:
        """Raises TrainingError when the text, called `name`, is too short to hold out a window of it."""
        self.tokenizer = tokenizer
        self.special = SpecialTokens()
        self.max_length = self._length = length
        n_held_out = max(int(len(ids) * HELD_OUT_SHARE), length + 1)
        self._train, held_out = ids[:-n_held_out], ids[-n_held_out:]
        if len(self._train) <= length:
            raise TrainingError(
                f"{name} has {len(ids):,} tokens: with a length of {length} at least {2 * (length + 1):,} are needed, "
                "half of them to measure accuracy on. Choose a longer text or a shorter length."
            )
        last = len(held_out) - length - 1
        self.held_out = self._windows(held_out, np.unique(np.linspace(0, last, N_HELD_OUT).astype(np.int64)))
        self.probe = Example(ids=tuple(held_out[: min(length, PROBE_TOKENS)].tolist()))

    def batch(self, generator: np.random.Generator, size: int) -> Batch:
        """`size` windows at places drawn by `generator`."""
        return self._windows(self._train, generator.integers(0, len(self._train) - self._length, size))

    def _windows(self, ids: Ids, starts: Ids) -> Batch:
        """The windows that begin there, and the same windows one token later."""
        windows = ids[starts[:, None] + np.arange(self._length + 1)]
        return Batch(ids_BN=windows[:, :-1], targets=windows[:, 1:])


def read_characters(path: Path, *, length: int) -> TextData:
    """The characters of a text file, each of its line ends (CR LF, CR) as one LF.

    Raises TrainingError when it cannot be read or is too short.
    """
    try:
        with TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
            text = file.read()
    except CheckpointError as error:
        raise TrainingError(f"The text {error}; choose another file.") from error
    except UnicodeDecodeError as error:
        raise TrainingError(
            f"The text {path} is not UTF-8 (byte 0x{error.object[error.start]:02X} at offset {error.start}): "
            "save it as UTF-8 text or choose another file."
        ) from error
    code_points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    alphabet = np.unique(code_points)
    ids = np.zeros(code_points.max(initial=0) + 1, dtype=np.int64)
    ids[alphabet] = np.arange(len(alphabet))
    tokenizer = CharacterTokenizer([chr(code_point) for code_point in alphabet])
    # numpy's own inverse is three times slower and holds up every other thread, for a second with a book of 50 MB
    return TextData(ids.take(code_points), tokenizer, length=length, name=path.name)
