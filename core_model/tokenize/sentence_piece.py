"""Tokenizers run by the `sentencepiece` library: a .model file, and the control tokens a family adds to its pieces."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor

from core_model.tokenize.encoding import Encoding, Span, Tokenizer, require_unicode, unused_row, within_rows
from core_model.tokenize.files import fault, is_tiktoken, read_bytes
from core_model.tokenize.template import Template
from core_model.tokenize.token_text import Spelling, text_of, texts_of

_SPELLING = Spelling(byte_pieces=True, space="▁")
_MOST_PIECES = 950_000
"""The largest published, XLM-V's, has 901 629."""
_LENGTH_BITS = 64
_BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True, kw_only=True)
class PieceModel:
    """A sentencepiece model and its pieces in their order."""

    processor: Any  # SentencePieceProcessor, whose own annotations are incomplete
    pieces: Sequence[str]


def read_model(path: Path) -> PieceModel:
    """The sentencepiece model in `path`."""
    data = read_bytes(path)
    if is_tiktoken(path):
        raise fault(
            path, "is a tiktoken vocabulary, not a sentencepiece model: put the model's tokenizer.json beside it"
        )
    if _n_parts(data) > _MOST_PIECES:
        raise fault(path, f"has more than {_MOST_PIECES:,} pieces: use the model's own file")
    try:
        processor = SentencePieceProcessor(model_proto=data)
        return PieceModel(processor=processor, pieces=processor.id_to_piece(list(range(processor.get_piece_size()))))
    except (RuntimeError, UnicodeDecodeError) as error:
        raise fault(path, "is damaged or is not a sentencepiece model: download it again") from error


def _n_parts(data: bytes) -> int:
    """How many parts a model holds, nearly all of them pieces, at most _MOST_PIECES + 1.

    Each is a byte of its kind, a length, and so many bytes. The length is in groups of seven bits, the lowest first,
    all but the last with an eighth one set. What else the file may be is the library's to say.
    """
    position = n = 0
    while position < len(data) and n <= _MOST_PIECES:
        length = shift = 0
        while (position := position + 1) < len(data) and shift < _LENGTH_BITS:
            length |= (data[position] & 0x7F) << shift
            shift += 7
            if data[position] < 0x80:
                break
        position += 1 + length
        n += 1
    return n


@dataclass(frozen=True, kw_only=True)
class PieceIds:
    """How a family numbers the pieces of its sentencepiece model, and which tokens it has beside them."""

    token_of: Mapping[int, str]
    """id -> token."""
    id_of_piece: Sequence[int]
    """Number of the piece in the sentencepiece model -> id."""

    @cached_property
    def id_of(self) -> dict[str, int]:
        """token -> id, the smallest where several ids spell the same."""
        return {token: id for id, token in sorted(self.token_of.items(), reverse=True)}


@dataclass(frozen=True, kw_only=True)
class Cleaned:
    """A text as it goes to sentencepiece, and where each of its characters came from."""

    text: str
    origins: Sequence[int]
    """Index in the given text of each character of `text`."""

    def span(self, start: int, end: int) -> Span:
        """Span in the given text of characters [start, end) of `text`."""
        if start == end:
            at = self.origins[start] if start < len(self.origins) else (self.origins[-1] + 1 if self.origins else 0)
            return at, at
        return self.origins[start], self.origins[end - 1] + 1


def unchanged(text: str) -> Cleaned:
    """`text` as it is."""
    return Cleaned(text=text, origins=range(len(text)))


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a family does around its sentencepiece model."""

    around: Template
    special: frozenset[str]
    """Control tokens."""
    typed: frozenset[str]
    """Tokens that are read as themselves when they stand in a text. sentencepiece reads none of its control tokens."""
    leading: frozenset[str] = field(default_factory=frozenset)
    """Tokens that are read as themselves at the start of a text only (Marian's >>fra<<)."""
    clean: Callable[[str], Cleaned] = unchanged


@dataclass(frozen=True, kw_only=True)
class _Found:
    id: int
    span: Span | None
    type_id: int
    sequence: int | None


class SentencePieceTokenizer(Tokenizer):
    """One side of a model whose texts are cut by sentencepiece."""

    def __init__(
        self,
        model: PieceModel,
        *,
        ids: PieceIds,
        rules: Rules,
        kind: str,
        source: Path,
        rows: int | None = None,
        warnings: Sequence[str] = (),
        target: Tokenizer | None = None,
    ) -> None:
        missing = [token for token in rules.around.tokens() if token not in ids.id_of]
        if missing:
            raise fault(
                source, f"lacks the token {missing[0]}, which stands around every text: use the model's own file"
            )
        self.kind = kind
        self.source = source
        self.warnings = tuple(warnings)
        self._processor = model.processor
        self._ids = ids
        self._rules = rules
        self._rows = rows
        self._target = target
        controls = {ids.id_of_piece[n] for n in range(len(model.pieces)) if self._processor.is_control(n)}
        self._special = controls | {ids.id_of[token] for token in rules.special if token in ids.id_of}
        self._typed = _alternatives(rules.typed & ids.id_of.keys())
        self._leading = _alternatives(rules.leading & ids.id_of.keys())

    @property
    def vocab_size(self) -> int:
        return len(self._ids.token_of)

    @property
    def target(self) -> Tokenizer:
        return self._target or self

    def encode(self, text: str, pair: str | None = None) -> Encoding:
        found: list[_Found] = []
        for name, type_id in self._rules.around.parts(with_pair=pair is not None):
            if name == "$A":
                found += self._pieces(text, type_id, 0)
            elif name == "$B":
                found += self._pieces(pair or "", type_id, 1)
            else:
                found.append(_Found(id=self._ids.id_of[name], span=None, type_id=type_id, sequence=None))
        encoding = Encoding(
            ids=tuple(one.id for one in found),
            texts=texts_of([self._bytes_of(one.id) for one in found]),
            offsets=tuple(one.span for one in found),
            type_ids=tuple(one.type_id for one in found),
            special=tuple(one.sequence is None for one in found),
            sequence=tuple(one.sequence for one in found),
        )
        return within_rows(encoding, self._rows, self.kind)

    def decode(self, ids: Sequence[int]) -> str:
        tokens = self._ids.token_of
        return self._processor.decode_pieces([tokens[id] for id in ids if id in tokens and id not in self._special])

    def token_text(self, id: int) -> str:
        return text_of(self._bytes_of(id)) if id in self._ids.token_of else unused_row(id)

    def _bytes_of(self, id: int) -> bytes:
        token = self._ids.token_of[id]
        return token.encode("utf-8") if id in self._special else _SPELLING.bytes_of(token)

    def _pieces(self, text: str, type_id: int, sequence: int) -> Iterator[_Found]:
        require_unicode(text)
        for start, end, token in self._segments(text):
            if token is not None:
                yield _Found(id=self._ids.id_of[token], span=(start, end), type_id=type_id, sequence=sequence)
                continue
            cleaned = self._rules.clean(text[start:end])
            mapping = self._processor.encode(cleaned.text, return_type="offset_mapping")
            spans = _whole_characters(mapping["pieces"], mapping["offsets"])
            for number, span in zip(mapping["ids"], spans, strict=True):
                inner = cleaned.span(*span)
                yield _Found(
                    id=self._ids.id_of_piece[number],
                    span=(start + inner[0], start + inner[1]),
                    type_id=type_id,
                    sequence=sequence,
                )

    def _segments(self, text: str) -> Iterator[tuple[int, int, str | None]]:
        """(start, end, token): stretches of plain text (token None) and the tokens typed between them."""
        at = 0
        if match := self._leading.match(text):
            yield 0, match.end(), match[0]
            at = match.end()
        for match in self._typed.finditer(text, at):
            if match.start() > at:
                yield at, match.start(), None
            yield match.start(), match.end(), match[0]
            at = match.end()
        if at < len(text):
            yield at, len(text), None


def _alternatives(tokens: frozenset[str] | set[str]) -> re.Pattern[str]:
    """A pattern of `tokens`, longest first; one that matches nothing when there are none."""
    ordered = sorted((token for token in tokens if token), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)) or r"(?!)")


def _whole_characters(pieces: Sequence[str], offsets: Sequence[Span]) -> list[Span]:
    """Spans where each byte of a character has the character's span; sentencepiece gives it to the last byte only."""
    spans = list(offsets)
    for index in range(len(spans) - 2, -1, -1):
        start, end = spans[index]
        if start == end and _BYTE_PIECE.fullmatch(pieces[index]) and _BYTE_PIECE.fullmatch(pieces[index + 1]):
            spans[index] = spans[index + 1]
    return spans
