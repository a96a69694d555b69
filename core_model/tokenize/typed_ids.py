"""Ids typed by hand, for a model without a tokenizer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core_model.errors import TokenizerError
from core_model.tokenize.encoding import Encoding, Span, Tokenizer

_WORD = re.compile(r"[^\s,;]+")


class TypedIds(Tokenizer):
    """Reads "464, 3797 3332" as three ids: decimal numbers between spaces, commas or semicolons."""

    kind = "ids typed by hand"
    source = None
    warnings = ()

    def __init__(self, vocab_size: int, why: str = "it has no tokenizer") -> None:
        """`vocab_size` is the number of rows of the model's embedding, `why` says what is wrong with words."""
        self._rows = vocab_size
        self._why = why

    @property
    def vocab_size(self) -> int:
        return self._rows

    def encode(self, text: str, pair: str | None = None) -> Encoding:
        found = [(id, span, owner) for owner, given in enumerate((text, pair or "")) for id, span in self._read(given)]
        owners = tuple(owner for _, _, owner in found)
        return Encoding(
            ids=tuple(id for id, _, _ in found),
            texts=tuple(self.token_text(id) for id, _, _ in found),
            offsets=tuple(span for _, span, _ in found),
            type_ids=owners,
            special=(False,) * len(found),
            sequence=owners,
        )

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(str(id) for id in ids)

    def token_text(self, id: int) -> str:
        return str(id)

    def _read(self, text: str) -> list[tuple[int, Span]]:
        ids: list[tuple[int, Span]] = []
        for match in _WORD.finditer(text):
            word = match[0]
            if not (word.isascii() and word.isdigit() and len(word) < 12 and int(word) < self._rows):
                raise TokenizerError(
                    f"{word[:40]!r} is not a token id of this model (numbers from 0 to {self._rows - 1}, separated by "
                    f"spaces or commas): {self._why}"
                )
            ids.append((int(word), match.span()))
        return ids
