"""Character and byte tokenizers: those of models trained here. Kept as a small JSON file in the run folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from core_model.errors import TokenizerError
from core_model.tokenize.encoding import Encoding, Span, Tokenizer, require_unicode, unused_row, within_rows
from core_model.tokenize.files import fault, read_json
from core_model.tokenize.template import Template
from core_model.tokenize.token_text import text_of, texts_of

NATIVE_FILE = "native_tokenizer.json"
_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class _Unit:
    """A token found in a text."""

    id: int
    part: bytes
    span: Span


class _NativeTokenizer(Tokenizer):
    """Ids: the control tokens in their order, then the units of the text (characters or bytes)."""

    kind: str

    def __init__(self, *, special: Sequence[str], template: Template, rows: int | None, source: Path | None) -> None:
        if len(set(special)) != len(special):
            raise TokenizerError(f"The tokenizer's control tokens {list(special)} repeat one: give each once.")
        unknown = [token for token in template.tokens() if token not in special]
        if unknown:
            raise TokenizerError(
                f"The tokenizer puts {unknown[0]} around texts, but its control tokens are {list(special)}."
            )
        self.special = tuple(special)
        self.template = template
        self.source = source
        self.warnings: tuple[str, ...] = ()
        self._rows = rows

    def special_id(self, token: str) -> int:
        """The id of a control token; TokenizerError when there is none of that name."""
        if token not in self.special:
            raise TokenizerError(f"The tokenizer has no control token {token!r}; it has {list(self.special)}.")
        return self.special.index(token)

    def encode(self, text: str, pair: str | None = None) -> Encoding:
        ids: list[int] = []
        parts: list[bytes] = []
        offsets: list[Span | None] = []
        type_ids: list[int] = []
        sequence: list[int | None] = []
        for name, type_id in self.template.parts(with_pair=pair is not None):
            if name in ("$A", "$B"):
                units = list(self._units(text if name == "$A" else pair or ""))
                ids += [unit.id for unit in units]
                parts += [unit.part for unit in units]
                offsets += [unit.span for unit in units]
                sequence += [0 if name == "$A" else 1] * len(units)
            else:
                ids.append(self.special_id(name))
                parts.append(name.encode("utf-8"))
                offsets.append(None)
                sequence.append(None)
            type_ids += [type_id] * (len(ids) - len(type_ids))
        encoding = Encoding(
            ids=tuple(ids),
            texts=texts_of(parts),
            offsets=tuple(offsets),
            type_ids=tuple(type_ids),
            special=tuple(owner is None for owner in sequence),
            sequence=tuple(sequence),
        )
        return within_rows(encoding, self._rows, self.kind)

    def token_text(self, id: int) -> str:
        if 0 <= id < len(self.special):
            return self.special[id]
        return text_of(self._part(id)) if 0 <= id < self.vocab_size else unused_row(id)

    def _text_ids(self, ids: Sequence[int]) -> Iterator[int]:
        return (id for id in ids if len(self.special) <= id < self.vocab_size)

    def _units(self, text: str) -> Iterator[_Unit]:
        raise NotImplementedError

    def _part(self, id: int) -> bytes:
        raise NotImplementedError


class CharacterTokenizer(_NativeTokenizer):
    """One token a character of a fixed alphabet; CR LF and CR are read as LF where the alphabet has only that."""

    kind = "characters"

    def __init__(
        self,
        characters: Sequence[str],
        *,
        special: Sequence[str] = (),
        template: Template | None = None,
        unknown: str | None = None,
        rows: int | None = None,
        source: Path | None = None,
    ) -> None:
        """`unknown` names the control token for characters outside the alphabet; without one they are refused."""
        super().__init__(special=special, template=template or Template(), rows=rows, source=source)
        self.characters = tuple(characters)
        if any(len(character) != 1 for character in self.characters) or len(set(self.characters)) != len(
            self.characters
        ):
            raise TokenizerError("The character tokenizer's alphabet must list single characters, each once.")
        self.unknown = unknown
        self._unknown_id = None if unknown is None else self.special_id(unknown)
        self._id_of = {character: len(self.special) + n for n, character in enumerate(self.characters)}
        if "\n" in self._id_of and "\r" not in self._id_of:
            self._id_of |= dict.fromkeys(("\r", "\r\n"), self._id_of["\n"])
        self._unit = re.compile(r"\r\n|." if "\r\n" in self._id_of else ".", re.DOTALL)

    @classmethod
    def of_text(
        cls,
        text: str,
        *,
        special: Sequence[str] = (),
        template: Template | None = None,
        unknown: str | None = None,
    ) -> CharacterTokenizer:
        """The tokenizer whose alphabet is the characters of `text`, in code point order."""
        return cls(sorted(set(text)), special=special, template=template, unknown=unknown)

    @property
    def vocab_size(self) -> int:
        return len(self.special) + len(self.characters)

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.characters[id - len(self.special)] for id in self._text_ids(ids))

    def save(self, folder: Path) -> Path:
        """Write the native file into `folder`; returns its path."""
        return _write(
            folder,
            _NativeFile(
                kind="characters",
                special=list(self.special),
                single=self.template.single,
                pair=self.template.pair,
                characters="".join(self.characters),
                unknown=self.unknown,
            ),
        )

    def _units(self, text: str) -> Iterator[_Unit]:
        for found in self._unit.finditer(text):
            id = self._id_of.get(found[0], self._unknown_id)
            if id is None:
                raise TokenizerError(
                    f"Character {found.start() + 1} of the text, {found[0]!r}, is not among the {len(self.characters)} "
                    f"characters the model was trained on ({_listed(self.characters)}): leave it out."
                )
            yield _Unit(id=id, part=self._part(id), span=found.span())

    def _part(self, id: int) -> bytes:
        at = id - len(self.special)
        return (self.characters[at] if at >= 0 else self.special[id]).encode("utf-8")


class ByteTokenizer(_NativeTokenizer):
    """One token a byte of the text's UTF-8 form."""

    kind = "bytes"

    def __init__(
        self,
        *,
        special: Sequence[str] = (),
        template: Template | None = None,
        rows: int | None = None,
        source: Path | None = None,
    ) -> None:
        super().__init__(special=special, template=template or Template(), rows=rows, source=source)

    @property
    def vocab_size(self) -> int:
        return len(self.special) + 256

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`; a byte that belongs to no character is spelled <0xF0>."""
        return text_of(bytes(id - len(self.special) for id in self._text_ids(ids)))

    def save(self, folder: Path) -> Path:
        """Write the native file into `folder`; returns its path."""
        return _write(
            folder,
            _NativeFile(kind="bytes", special=list(self.special), single=self.template.single, pair=self.template.pair),
        )

    def _units(self, text: str) -> Iterator[_Unit]:
        require_unicode(text)
        for index, character in enumerate(text):
            for byte in character.encode("utf-8"):
                yield _Unit(id=len(self.special) + byte, part=bytes([byte]), span=(index, index + 1))

    def _part(self, id: int) -> bytes:
        return bytes([id - len(self.special)])


class _NativeFile(msgspec.Struct, kw_only=True):
    version: int = _VERSION
    kind: Literal["characters", "bytes"]
    special: list[str]
    single: str
    pair: str
    characters: str = ""
    unknown: str | None = None


def load_native(path: Path, rows: int | None) -> CharacterTokenizer | ByteTokenizer:
    """The tokenizer in a native file."""
    file = read_json(path, _NativeFile)
    if file.version != _VERSION:
        raise fault(path, f"has version {file.version}, this program reads version {_VERSION}: update the program")
    template = Template(single=file.single, pair=file.pair)
    if file.kind == "bytes":
        return ByteTokenizer(special=file.special, template=template, rows=rows, source=path)
    return CharacterTokenizer(
        file.characters, special=file.special, template=template, unknown=file.unknown, rows=rows, source=path
    )


def _write(folder: Path, file: _NativeFile) -> Path:
    path = folder / NATIVE_FILE
    path.write_bytes(msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n")
    return path


def _listed(characters: Sequence[str]) -> str:
    shown = " ".join(repr(character)[1:-1] for character in characters[:40])
    return shown if len(characters) <= 40 else f"{shown} ..."
