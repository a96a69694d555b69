"""Tokenizers run by the `tokenizers` library: tokenizer.json, and the older files once they are built into one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path

import msgspec
from tokenizers import AddedToken
from tokenizers import Tokenizer as Library

from core_model.errors import TokenizerError
from core_model.tokenize.encoding import Encoding, Tokenizer, require_unicode, unused_row, within_rows
from core_model.tokenize.files import decode_json, fault, read_bytes
from core_model.tokenize.token_text import Spelling, text_of, texts_of
from core_model.wording import shown

_MOST_VALUES = 2_200_000
"""Of a tokenizer.json. The largest published, Gemma's, have over half a million merges, three values each."""


class LibraryTokenizer(Tokenizer):
    """A tokenizer of the library, with its truncation and padding switched off."""

    def __init__(
        self,
        library: Library,
        *,
        spelling: Spelling,
        kind: str,
        source: Path,
        rows: int | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        library.no_truncation()
        library.no_padding()
        added = library.get_added_tokens_decoder()
        self.kind = kind
        self.source: Path | None = source
        self.warnings: tuple[str, ...] = tuple(warnings)
        self._library = library
        self._spelling = spelling
        self._rows = rows
        self._added = {id: token.content for id, token in added.items()}
        self._special = {id for id, token in added.items() if token.special}

    @property
    def vocab_size(self) -> int:
        return self._library.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str, pair: str | None = None) -> Encoding:
        for given in (text, pair or ""):
            require_unicode(given)
        with library_door(self.kind):
            found = self._library.encode(text, pair)
            parts = [self._bytes_of(id) for id in found.ids]
            sequence = tuple(found.sequence_ids)
            encoding = Encoding(
                ids=tuple(found.ids),
                texts=texts_of(parts),
                offsets=tuple(
                    None if owner is None else span for span, owner in zip(found.offsets, sequence, strict=True)
                ),
                type_ids=tuple(found.type_ids),
                special=tuple(owner is None for owner in sequence),
                sequence=sequence,
            )
        return within_rows(encoding, self._rows, self.kind)

    def decode(self, ids: Sequence[int]) -> str:
        shown = [id for id in ids if id not in self._special and self._token(id) is not None]
        if not shown:  # some of the library's decoders panic when there is nothing to decode
            return ""
        with library_door(self.kind):
            return self._library.decode(shown)

    def save(self, folder: Path) -> Path:
        """Write tokenizer.json into `folder`; returns its path."""
        path = folder / "tokenizer.json"
        path.write_text(self._library.to_str(), encoding="utf-8")
        return path

    def token_text(self, id: int) -> str:
        return unused_row(id) if self._token(id) is None else text_of(self._bytes_of(id))

    def _token(self, id: int) -> str | None:
        return self._library.id_to_token(id) if 0 <= id < 2**32 else None

    def _bytes_of(self, id: int) -> bytes:
        if id in self._added:
            return self._added[id].encode("utf-8")
        return self._spelling.bytes_of(self._library.id_to_token(id) or "")


@contextmanager
def library_door(name: str) -> Iterator[None]:
    """Turn whatever the library raises into TokenizerError.

    It raises bare `Exception` for its own errors, and a panic of its Rust code arrives as a BaseException whose class
    cannot be imported.
    """
    try:
        yield
    except TokenizerError:
        raise
    except Exception as error:
        raise TokenizerError(
            f"The tokenizer ({name}) failed: {shown(error)}. Use the file saved with the model."
        ) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(
            f"The tokenizer ({name}) made the tokenizers library panic: {shown(error)}. "
            "Use the file saved with the model."
        ) from error


def add_tokens(
    library: Library, ids: Mapping[str, int], *, special: Set[str], lstrip: Set[str] = frozenset(), source: Path
) -> None:
    """Let `library` find these tokens in a text as they stand, before any normalization.

    The library numbers those outside its vocabulary itself; TokenizerError when that is not the number in `ids`.
    """
    names = sorted(ids, key=ids.__getitem__)
    library.add_tokens(
        [AddedToken(name, special=name in special, normalized=False, lstrip=name in lstrip) for name in names]
    )
    for name in names:
        if (number := library.token_to_id(name)) != ids[name]:
            raise fault(
                source,
                f"leaves id {number} for the added token {name!r}, whose id is {ids[name]}: use the model's own files",
            )


class _Model(msgspec.Struct):
    type: str = ""
    byte_fallback: bool = False
    end_of_word_suffix: str | None = None


class _Decoder(msgspec.Struct):
    type: str = ""
    decoders: list[_Decoder] = []

    def types(self) -> set[str]:
        return {self.type}.union(*(decoder.types() for decoder in self.decoders))


class _Truncation(msgspec.Struct):
    max_length: int


class _Padding(msgspec.Struct):
    direction: str = "Right"


class _File(msgspec.Struct):
    model: _Model
    decoder: _Decoder | None = None
    truncation: _Truncation | None = None
    padding: _Padding | None = None


def load_tokenizer_json(path: Path, rows: int | None) -> LibraryTokenizer:
    """The tokenizer in a tokenizer.json."""
    data = read_bytes(path)
    file = decode_json(path, data, _File, most=_MOST_VALUES)
    with library_door(path.name):
        try:
            library = Library.from_buffer(data)
        except Exception as error:
            raise fault(path, f"is refused by the tokenizers library: {shown(error)}. Download it again") from error
    decoders = file.decoder.types() if file.decoder else set()
    spelling = Spelling(
        byte_level="ByteLevel" in decoders,
        byte_pieces=file.model.byte_fallback,
        space="▁" if decoders & {"Metaspace", "Replace"} else "",
        word_end=file.model.end_of_word_suffix or "",
    )
    kind = f"tokenizer.json ({file.model.type})" if file.model.type else "tokenizer.json"
    warnings = list(_ignored(path, file))
    return LibraryTokenizer(library, spelling=spelling, kind=kind, source=path, rows=rows, warnings=warnings)


def _ignored(path: Path, file: _File) -> Iterator[str]:
    if file.truncation:
        limit = file.truncation.max_length
        yield f"{path.name} asks for truncation to {limit} tokens; ignored, the whole text is used."
    if file.padding:
        yield f"{path.name} asks for padding; ignored, no padding tokens are added."
