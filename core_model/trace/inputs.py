"""What a model is run on: one example, checked at this door. No torch here.

Shape letters: N tokens of the first stack, M tokens of the decoder beside an encoder, E width of given vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core_model.errors import TraceError
from core_model.tokenize import Encoding

Ids: TypeAlias = Sequence[int] | npt.NDArray[np.integer]
Vectors: TypeAlias = npt.NDArray[np.floating]


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs:
    """One example: ids [N] (or embeddings [N, E] in their place), and decoder_ids [M] for an encoder-decoder.

    attention_mask [N] is 0 at padding, which is cut away: positions then count real tokens only. `tokens` and
    `decoder_tokens` are the texts of the ids, for display. Raises TraceError naming the axis and the sizes.
    """

    ids: Ids | None = None
    type_ids: Ids | None = None
    attention_mask: Ids | None = None
    decoder_ids: Ids | None = None
    embeddings: Vectors | None = None
    decoder_embeddings: Vectors | None = None
    tokens: Encoding | None = None
    decoder_tokens: Encoding | None = None

    def __post_init__(self) -> None:
        if (self.ids is None) == (self.embeddings is None):
            raise TraceError("give either ids or embeddings, exactly one of the two")
        for name in ("ids", "type_ids", "attention_mask", "decoder_ids"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _checked_ids(name, getattr(self, name)))
        for name in ("embeddings", "decoder_embeddings"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _checked_vectors(name, getattr(self, name)))
        for name in ("type_ids", "attention_mask"):
            given = getattr(self, name)
            if given is not None and len(given) != self.n_tokens:
                raise TraceError(f"{name} has {len(given)} entries, but there are {self.n_tokens} tokens")
        self._cut_padding()

    @property
    def n_tokens(self) -> int:
        """Number of tokens of the first stack."""
        source = self.ids if self.ids is not None else self.embeddings
        assert source is not None
        return len(source)

    def _cut_padding(self) -> None:
        if self.attention_mask is None:
            return
        is_real = np.asarray(self.attention_mask) != 0
        if not is_real.any():
            raise TraceError("attention_mask is 0 everywhere: there is no token to attend to")
        for name in ("ids", "type_ids", "embeddings"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, getattr(self, name)[is_real])
        object.__setattr__(self, "attention_mask", None)


def _checked_ids(name: str, given: Ids) -> npt.NDArray[np.int64]:
    array = np.asarray(given)
    if array.ndim != 1:
        raise TraceError(f"{name} has shape {array.shape}: expected one axis, [tokens], without a batch axis")
    if not len(array):
        raise TraceError(f"{name} is empty: give at least one token")
    if not (np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_):
        raise TraceError(f"{name} holds {array.dtype} values: expected whole numbers")
    return array.astype(np.int64)


def _checked_vectors(name: str, given: Vectors) -> npt.NDArray[np.float32]:
    array = np.asarray(given, dtype=np.float32)
    if array.ndim != 2 or not array.shape[0]:
        raise TraceError(f"{name} has shape {array.shape}: expected two axes, [tokens, width], without a batch axis")
    return array
