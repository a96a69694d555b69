"""Vocabularies that rank byte sequences, as tiktoken does: Mistral's tekken.json, and the tokenizer.model of Llama 3.

Of all neighbours in a word whose bytes together are a token, those whose token has the lowest rank are merged first. As
merges of byte pair encoding, that is every way to cut a token into two others, in the order of the tokens' ranks.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from tokenizers import Regex, decoders, models, pre_tokenizers, processors
from tokenizers import Tokenizer as Library

from core_model.tokenize import template
from core_model.tokenize.files import decode_json, fault, read_bytes, require_few_lines
from core_model.tokenize.library import LibraryTokenizer, add_tokens, library_door
from core_model.tokenize.token_text import BYTE_OF_CHARACTER, Spelling

_LONGEST_TOKEN = 1024
"""Bytes. The longest published, of spaces, have 512."""
_CHARACTER_OF_BYTE = {byte: character for character, byte in BYTE_OF_CHARACTER.items()}
_LLAMA_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
_LLAMA_CONTROL = {
    "<|begin_of_text|>": 0,
    "<|end_of_text|>": 1,
    "<|start_header_id|>": 6,
    "<|end_header_id|>": 7,
    "<|eot_id|>": 9,
}
"""Meta's code numbers these behind the ranks; those between them changed from release to release."""
_TEKKEN_CONTROL = ("<unk>", "<s>", "</s>")
"""The first control tokens of files that do not list theirs."""

Ranks = dict[bytes, int]


class _Ranked(msgspec.Struct):
    rank: int
    token_bytes: str


class _Control(msgspec.Struct):
    rank: int
    token_str: str


class _TekkenConfig(msgspec.Struct):
    pattern: str
    default_vocab_size: int
    default_num_special_tokens: int = 1000


class _Tekken(msgspec.Struct):
    config: _TekkenConfig
    vocab: list[_Ranked]
    special_tokens: list[_Control] | None = None


def load_tekken(path: Path, rows: int | None) -> LibraryTokenizer:
    """The tokenizer of a tekken.json: control tokens first, then as many ranks as the vocabulary has room for."""
    file = decode_json(path, read_bytes(path), _Tekken)
    n_control = file.config.default_num_special_tokens
    n_ranks = file.config.default_vocab_size - n_control
    if not 0 < n_ranks <= len(file.vocab) or n_control < len(_TEKKEN_CONTROL):
        raise fault(
            path,
            f"has a default_vocab_size of {file.config.default_vocab_size} with {n_control} control tokens, but "
            f"{len(file.vocab)} tokens in vocab: download it again",
        )
    ranks = {_bytes(path, token.token_bytes): token.rank for token in file.vocab if token.rank < n_ranks}
    listed = file.special_tokens or [_Control(rank=rank, token_str=name) for rank, name in enumerate(_TEKKEN_CONTROL)]
    control = {token.token_str: token.rank for token in listed}
    return _tokenizer(
        path, _checked(path, ranks), control, pattern=file.config.pattern, bos="<s>", first_id=n_control, rows=rows
    )


def load_llama3(path: Path, rows: int | None) -> LibraryTokenizer:
    """The tokenizer of Llama 3's tokenizer.model, whose control tokens follow the ranks."""
    data = read_bytes(path)
    require_few_lines(path, data)
    ranks: Ranks = {}
    for number, line in enumerate(data.splitlines(), start=1):
        token, _, rank = line.partition(b" ")
        if not re.fullmatch(rb"\d{1,9}", rank):
            raise fault(path, f"has no token with its rank on line {number}: download it again")
        ranks[_bytes(path, token.decode("latin-1"))] = int(rank)
    control = {name: len(ranks) + number for name, number in _LLAMA_CONTROL.items()}
    return _tokenizer(
        path, _checked(path, ranks), control, pattern=_LLAMA_WORDS, bos="<|begin_of_text|>", first_id=0, rows=rows
    )


def _bytes(path: Path, token: str) -> bytes:
    try:
        found = base64.b64decode(token, validate=True)
    except (binascii.Error, ValueError) as error:
        raise fault(path, f"has {token[:40]!r} for a token, which is not base64: download it again") from error
    if not 0 < len(found) <= _LONGEST_TOKEN:
        raise fault(path, f"has a token of {len(found)} bytes: expected 1 to {_LONGEST_TOKEN}; download it again")
    return found


def _checked(path: Path, ranks: Ranks) -> Ranks:
    """The ranks, when they are 0, 1, 2 ... and every byte is a token."""
    if sorted(ranks.values()) != list(range(len(ranks))) or any(bytes([byte]) not in ranks for byte in range(256)):
        raise fault(path, "does not rank every byte and every token once, from 0 on: download it again")
    return ranks


def _tokenizer(
    path: Path,
    ranks: Ranks,
    control: Mapping[str, int],
    *,
    pattern: str,
    bos: str,
    first_id: int,
    rows: int | None,
) -> LibraryTokenizer:
    """Byte-level BPE with these ranks, numbered from `first_id`, in the words that `pattern` finds."""
    if bos not in control:
        raise fault(path, f"lists no {bos} among its control tokens: download it again")
    spelled = {_spelled(token): first_id + rank for token, rank in ranks.items()}
    around = template.begun(bos, None)
    with library_door(path.name):
        library = Library(models.BPE({**spelled, **control}, list(_merges(ranks)), ignore_merges=True))
        library.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        library.decoder = decoders.ByteLevel()
        add_tokens(library, control, special=control.keys(), source=path)
        library.post_processor = processors.Sequence(
            [
                processors.ByteLevel(trim_offsets=False),
                processors.TemplateProcessing(
                    single=around.single, pair=around.pair, special_tokens=[(bos, control[bos])]
                ),
            ]
        )
    kind = f"{path.name} (byte-level BPE by rank)"
    return LibraryTokenizer(library, spelling=Spelling(byte_level=True), kind=kind, source=path, rows=rows)


def _merges(ranks: Ranks) -> Iterator[tuple[str, str]]:
    for token in sorted(ranks, key=ranks.__getitem__):
        cuts = [(token[:at], token[at:]) for at in range(1, len(token))]
        known = [(left, right) for left, right in cuts if left in ranks and right in ranks]
        for left, right in sorted(known, key=lambda cut: (ranks[cut[0]], ranks[cut[1]])):
            yield _spelled(left), _spelled(right)


def _spelled(token: bytes) -> str:
    return "".join(_CHARACTER_OF_BYTE[byte] for byte in token)
