"""What a person reads for a token: vocabulary spelling -> bytes -> text.

Vocabularies spell bytes and spaces in their own ways, and a token can end in the middle of a character. Such tokens are
shown as parts of the character they share ("🙂 1/3"), found from the bytes of their neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _gpt2_bytes() -> dict[str, int]:
    """Character -> byte of byte-level BPE: printable bytes stand for themselves, the others for U+0100 and up.

    Radford et al. 2019, `bytes_to_unicode` of the released encoder.
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


BYTE_OF_CHARACTER = _gpt2_bytes()


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """How the strings of a vocabulary stand for text."""

    byte_level: bool = False
    """Each character stands for a byte (GPT-2)."""
    byte_pieces: bool = False
    """A token such as <0xF0> stands for one byte (sentencepiece's byte fallback)."""
    space: str = ""
    """The character that stands for a space, e.g. "▁"; empty when a space is a space."""
    word_end: str = ""
    """The suffix that marks the end of a word and is no text, e.g. "</w>"."""

    def bytes_of(self, token: str) -> bytes:
        """The UTF-8 bytes `token` stands for."""
        if self.byte_pieces and (match := _BYTE_PIECE.fullmatch(token)):
            return bytes([int(match[1], 16)])
        if self.word_end:
            token = token.removesuffix(self.word_end)
        if self.byte_level and all(character in BYTE_OF_CHARACTER for character in token):
            return bytes(BYTE_OF_CHARACTER[character] for character in token)
        return (token.replace(self.space, " ") if self.space else token).encode("utf-8")


def texts_of(parts: Sequence[bytes]) -> tuple[str, ...]:
    """The display text of each of a row of tokens, given their bytes."""
    texts: list[str] = []
    broken: list[bytes] = []  # neighbours that are not UTF-8 by themselves share characters with each other only
    for part in parts:
        try:
            text = part.decode("utf-8")
        except UnicodeDecodeError:
            broken.append(part)
            continue
        texts += _shared_characters(broken)
        broken = []
        texts.append(text)
    return (*texts, *_shared_characters(broken))


def text_of(part: bytes) -> str:
    """The display text of a token alone; bytes that are no whole character are spelled <0xF0>."""
    return texts_of([part])[0]


def _shared_characters(parts: Sequence[bytes]) -> list[str]:
    owners = [index for index, part in enumerate(parts) for _ in part]
    texts = [""] * len(parts)
    at = 0
    for character, width in _characters(b"".join(parts)):
        holders = sorted(set(owners[at : at + width]))
        if len(holders) == 1:
            texts[holders[0]] += character
        else:
            name = character if character.isprintable() else f"U+{ord(character):04X}"
            for number, holder in enumerate(holders, start=1):
                texts[holder] += f"{name} {number}/{len(holders)}"
            if at + width < len(owners) and owners[at + width] == holders[-1]:
                texts[holders[-1]] += " "  # more characters follow in the same token
        at += width
    return texts


def _characters(data: bytes) -> Iterator[tuple[str, int]]:
    """Characters of `data` with their widths in bytes; a byte that belongs to none is spelled <0xF0>."""
    at = 0
    while at < len(data):
        lead = data[at]
        width = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        try:
            yield data[at : at + width].decode("utf-8"), width
        except UnicodeDecodeError:
            width = 1
            yield f"<0x{lead:02X}>", width
        at += width
