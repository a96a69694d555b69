"""Examples of the symbol tasks: letters drawn at random, and what a transform makes of them.

An encoder-decoder reads `a b c <end>`, its decoder is fed `<begin> c b a` and is to predict `c b a <end>`. A decoder
alone reads `<begin> a b c | a b c` and is to predict what follows from the bar on. Lengths vary; padding is at the
right.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from core_model.config import SpecialTokens
from core_model.tokenize.native import CharacterTokenizer
from core_model.tokenize.template import Template
from core_model.training.data import IGNORED, N_HELD_OUT, Batch, Example, Ids, RunTokenizer

Transform: TypeAlias = Callable[[Ids], Ids]
"""Symbols of an example -> symbols to be written."""

SHORTEST = 4
"""Symbols. With 26 letters there are 456 976 examples of the shortest kind, so that what is held out is not missed."""

_SPECIAL = ("<pad>", "<begin>", "<end>")
_PADDING, _BEGIN, _END = range(3)
_SEPARATOR = "|"


class SymbolData:
    """Examples of SHORTEST to `length` letters; N_HELD_OUT of them, drawn by `seed`, are never trained on."""

    def __init__(self, transform: Transform, *, encoder_decoder: bool, length: int, seed: int) -> None:
        template = Template(single="$A <end>" if encoder_decoder else "<begin> $A")
        self.tokenizer: RunTokenizer = CharacterTokenizer(
            string.ascii_lowercase + _SEPARATOR, special=_SPECIAL, template=template
        )
        self.special = SpecialTokens(
            begin=_BEGIN, end=_END, padding=_PADDING, decoder_start=_BEGIN if encoder_decoder else None
        )
        self.max_length = length + 1 if encoder_decoder else 2 * length + 2
        self._transform, self._encoder_decoder = transform, encoder_decoder
        self._length = length
        generator = np.random.default_rng(seed)
        held_out = [self._draw(generator) for _ in range(N_HELD_OUT)]
        self._held_out = {symbols.tobytes() for symbols in held_out}
        self.held_out = self._assemble(held_out)
        longest = max(held_out, key=len)
        self.probe = self._example(longest)

    def batch(self, generator: np.random.Generator, size: int) -> Batch:
        """`size` new examples, none of them held out."""
        drawn: list[Ids] = []
        while len(drawn) < size:
            symbols = self._draw(generator)
            if symbols.tobytes() not in self._held_out:
                drawn.append(symbols)
        return self._assemble(drawn)

    def _draw(self, generator: np.random.Generator) -> Ids:
        """Ids of the letters of one example."""
        n = generator.integers(SHORTEST, self._length + 1)
        return generator.integers(len(_SPECIAL), len(_SPECIAL) + len(string.ascii_lowercase), n)

    def _example(self, symbols: Ids) -> Example:
        """One example as the model is fed it."""
        written = self._transform(symbols)
        if self._encoder_decoder:
            return Example(ids=(*symbols.tolist(), _END), decoder_ids=(_BEGIN, *written.tolist()))
        return Example(ids=(_BEGIN, *symbols.tolist(), self._separator, *written.tolist()))

    @property
    def _separator(self) -> int:
        return self.tokenizer.vocab_size - 1

    def _assemble(self, drawn: Sequence[Ids]) -> Batch:
        """Examples padded to the longest of them."""
        examples = [self._example(symbols) for symbols in drawn]
        answers = [(*self._transform(symbols).tolist(), _END) for symbols in drawn]
        ids_BN = _padded([example.ids for example in examples], _PADDING)
        key_mask_BN = ids_BN != _PADDING
        if self._encoder_decoder:
            decoder_ids_BM = _padded([example.decoder_ids or () for example in examples], _PADDING)
            targets_BM = _padded(answers, IGNORED)
            return Batch(ids_BN=ids_BN, decoder_ids_BM=decoder_ids_BM, key_mask_BN=key_mask_BN, targets=targets_BM)
        asked = [(IGNORED,) * (len(symbols) + 1) + answer for symbols, answer in zip(drawn, answers, strict=True)]
        return Batch(ids_BN=ids_BN, key_mask_BN=key_mask_BN, targets=_padded(asked, IGNORED))


def _padded(rows: Sequence[Sequence[int]], filler: int) -> Ids:
    """The rows as one array, filled up at the right."""
    longest = max(len(row) for row in rows)
    return np.array([(*row, *(filler,) * (longest - len(row))) for row in rows], dtype=np.int64)
