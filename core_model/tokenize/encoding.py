"""What every tokenizer offers, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol, TypeAlias

from core_model.errors import TokenizerError

Span = tuple[int, int]
Unit: TypeAlias = Literal["token", "patch", "frame"]
"""What an entry stands for: a token of a text, a patch of a picture, a frame of a sound."""


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """One text, or a pair of texts, as the tokens a model reads. All tuples have one entry a token."""

    unit: ClassVar[Unit] = "token"
    ids: tuple[int, ...]
    texts: tuple[str, ...]
    """What a person reads for each token; a token that holds part of a character reads "🙂 1/3"."""
    offsets: tuple[Span | None, ...]
    """Characters [start, end) of the token in its own text; None for a token that was not in the text."""
    type_ids: tuple[int, ...]
    """Segment of each token: 0, or 1 in the second text of models that tell the two apart."""
    special: tuple[bool, ...]
    """Control tokens that were added around the text. One that was typed in it ("[MASK]") counts as text."""
    sequence: tuple[int | None, ...]
    """0 for a token of the text, 1 for one of the pair, None for one that was added."""

    def __len__(self) -> int:
        return len(self.ids)


class Patches(Encoding):
    """A picture as the patches a model reads, with what it puts before them."""

    unit = "patch"


class Frames(Encoding):
    """A sound as the frames a model reads."""

    unit = "frame"


PROBE = Encoding(ids=(0,), texts=("probe",), offsets=(None,), type_ids=(0,), special=(True,), sequence=(None,))
"""The one learned query of an attention that pools: it stands for no token."""


class Tokenizer(Protocol):
    """Turns text into the ids of one model and back."""

    kind: str
    """For people, e.g. "tokenizer.json (BPE)"."""
    source: Path | None
    """The file it was read from."""
    warnings: tuple[str, ...]
    """What was ignored or inferred when it was read, one sentence each."""

    @property
    def vocab_size(self) -> int:
        """Number of tokens it knows."""
        ...

    @property
    def target(self) -> Tokenizer:
        """The tokenizer of the decoder's side; itself, but for translation models whose two sides differ."""
        return self

    def encode(self, text: str, pair: str | None = None) -> Encoding:
        """The tokens of `text` (and `pair`) with the control tokens the model expects around them.

        Raises TokenizerError when the text cannot be expressed in ids of the model.
        """
        ...

    def encode_target(self, text: str) -> Encoding:
        """The tokens of `text` as the sentence the decoder is to write."""
        return self.target.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, without control tokens. An id that has no token has no text."""
        ...

    def token_text(self, id: int) -> str:
        """What a person reads for one token; "<id 7>" for a row of the model that no token uses."""
        ...


def within_rows(encoding: Encoding, rows: int | None, kind: str) -> Encoding:
    """`encoding`, when all its ids are rows of the model's embedding; TokenizerError otherwise."""
    if rows is not None:
        for id, text in zip(encoding.ids, encoding.texts, strict=True):
            if id >= rows:
                raise TokenizerError(
                    f"Token {text!r} has id {id}, but the model's vocabulary ends at id {rows - 1} ({rows} rows): "
                    f"the tokenizer ({kind}) was made for a larger vocabulary. Put the tokenizer the model was trained "
                    "with beside it, or leave this token out of the text."
                )
    return encoding


def require_unicode(text: str) -> None:
    """Refuse text that has no UTF-8 form (half a surrogate pair), before a library trips over it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TokenizerError(
            f"Character {error.start + 1} of the text is half of a surrogate pair (U+{ord(text[error.start]):04X}), "
            "which the tokenizer cannot read; delete it or paste the text again."
        ) from error


def unused_row(id: int) -> str:
    """What a person reads for an id without a token."""
    return f"<id {id}>"


class SavableTokenizer(Protocol):
    """A tokenizer that can write itself."""

    def save(self, folder: Path) -> Path:
        """Write the tokenizer's file into the folder; returns its path."""
        ...
