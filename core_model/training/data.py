"""What a training reads: batches, the held-out examples it is judged by, and the example its attention is watched on.

Shape letters: B batch, N input positions, M decoder positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from core_model.config import SpecialTokens
from core_model.tokenize import Tokenizer
from core_model.tokenize.encoding import SavableTokenizer

Ids: TypeAlias = npt.NDArray[np.int64]

IGNORED = -100
"""The target of a position whose prediction does not count; what torch's `cross_entropy` skips by default."""
N_HELD_OUT = 64
"""Examples the accuracy is measured on."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Examples side by side. `key_mask_BN` is True at real tokens of the input; None where nothing is padded.

    `targets` are [B, M] where a decoder reads an encoder, else [B, N]; `IGNORED` where no prediction counts.
    """

    ids_BN: Ids
    targets: Ids
    decoder_ids_BM: Ids | None = None
    key_mask_BN: npt.NDArray[np.bool_] | None = None

    @property
    def n_tokens(self) -> int:
        """Tokens of input and decoder, padding not counted."""
        n_input = self.ids_BN.size if self.key_mask_BN is None else int(self.key_mask_BN.sum())
        return n_input if self.decoder_ids_BM is None else n_input + int((self.targets != IGNORED).sum())


@dataclass(frozen=True, kw_only=True)
class Example:
    """Ids of one input, and of what the decoder is fed where there is an encoder too."""

    ids: tuple[int, ...]
    decoder_ids: tuple[int, ...] | None = None


class RunTokenizer(Tokenizer, SavableTokenizer, Protocol):
    """A tokenizer that can be kept in a run folder."""


class TrainingData(Protocol):
    """A source of examples. `max_length` is the longest input of any stack, in tokens."""

    tokenizer: RunTokenizer
    special: SpecialTokens
    max_length: int
    held_out: Batch
    probe: Example

    def batch(self, generator: np.random.Generator, size: int) -> Batch:
        """`size` examples, none of them held out; `generator` alone decides which."""
        ...
