"""What a model is run on: one example, checked at this door. No torch here.

Shape letters: N tokens of the first stack, M tokens of the decoder beside an encoder, E width of given vectors, K
channels, Y rows, X columns, F audio features, T frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from core_model.errors import TraceError
from core_model.tokenize import Encoding

Ids: TypeAlias = Sequence[int] | npt.NDArray[np.integer]
Vectors: TypeAlias = npt.NDArray[np.floating]


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs:
    """One example: ids [N] (or embeddings [N, E] in their place), and decoder_ids [M] for an encoder-decoder.

    A model of images is given pixels [K, Y, X] as its own preprocessing makes them, two towers ids and pixels or one of
    them; a model of sound features [F, T], a spectrogram.
    A model without types reads no type_ids, which many tokenizers give to all.
    attention_mask [N] is 0 at padding, which is cut away: positions then count real tokens only.

    For display: `tokens` are what a person reads of the ids, or of the frames or patches where there are no ids,
    `decoder_tokens` of the decoder's, `picture_tokens` of the pixels beside ids. `notes` say what was done to a picture
    or a sound so that the model can read it. Raises TraceError naming the axis and the sizes.
    """

    ids: Ids | None = None
    type_ids: Ids | None = None
    attention_mask: Ids | None = None
    decoder_ids: Ids | None = None
    embeddings: Vectors | None = None
    decoder_embeddings: Vectors | None = None
    pixels: Vectors | None = None
    features: Vectors | None = None
    tokens: Encoding | None = None
    decoder_tokens: Encoding | None = None
    picture_tokens: Encoding | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = [name for name in ("ids", "embeddings", "features", "pixels") if getattr(self, name) is not None]
        if len(given) != 1 and given != ["ids", "pixels"]:
            raise TraceError(
                f"{' and '.join(given) or 'nothing'} were given: "
                "give either ids or embeddings (or pixels, features), exactly one, or ids and pixels for two towers"
            )
        if self.decoder_ids is not None and self.decoder_embeddings is not None:
            raise TraceError("give either decoder_ids or decoder_embeddings, not both")
        for name in ("ids", "type_ids", "attention_mask", "decoder_ids"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _checked_ids(name, getattr(self, name)))
        for name in ("embeddings", "decoder_embeddings"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _checked_array(name, getattr(self, name), "[tokens, width]"))
        if self.pixels is not None:
            object.__setattr__(self, "pixels", _checked_array("pixels", self.pixels, "[channels, rows, columns]"))
        if self.features is not None:
            object.__setattr__(self, "features", _checked_array("features", self.features, "[features, frames]"))
        named = ("type_ids", "attention_mask", *(("tokens",) if self.n_tokens else ()))
        self._check_lengths(named, self.n_tokens, "tokens")
        self._check_lengths(("decoder_tokens",), self.n_decoder_tokens, "decoder tokens")
        self._cut_padding()

    @property
    def n_tokens(self) -> int:
        """Number of tokens given to the first stack; 0 where it is given pixels or features."""
        source = self.ids if self.ids is not None else self.embeddings
        return 0 if source is None else len(source)

    @property
    def n_decoder_tokens(self) -> int:
        """Number of tokens of the decoder beside an encoder; 0 without any."""
        source = self.decoder_ids if self.decoder_ids is not None else self.decoder_embeddings
        return 0 if source is None else len(source)

    def tokens_of(self, stack: str) -> Encoding | None:
        """What a person reads of a stack's vectors, by its name; None where they have no names or there are none."""
        if stack == "decoder" and self.n_decoder_tokens:
            return self.decoder_tokens
        if stack == "vision":
            return self.tokens if self.ids is None else self.picture_tokens
        return None if stack == "text" and self.ids is None and self.embeddings is None else self.tokens

    def _check_lengths(self, names: tuple[str, ...], expected: int, of: str) -> None:
        for name in names:
            given = getattr(self, name)
            if given is not None and len(given) != expected:
                raise TraceError(f"{name} has {len(given)} entries, but there are {expected} {of}")

    def _cut_padding(self) -> None:
        if self.attention_mask is None:
            return
        is_real = np.asarray(self.attention_mask) != 0
        if not is_real.any():
            raise TraceError("attention_mask is 0 everywhere: there is no token to attend to")
        for name in ("ids", "type_ids", "embeddings"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, getattr(self, name)[is_real])
        if self.tokens is not None:
            kept = {field.name: _selected(getattr(self.tokens, field.name), is_real) for field in fields(Encoding)}
            object.__setattr__(self, "tokens", Encoding(**kept))
        object.__setattr__(self, "attention_mask", None)


def _selected(entries: tuple[Any, ...], is_kept: npt.NDArray[np.bool_]) -> tuple[Any, ...]:
    return tuple(entry for entry, kept in zip(entries, is_kept, strict=True) if kept)


def _checked_ids(name: str, given: Ids) -> npt.NDArray[np.int64]:
    try:
        array = np.asarray(given)
    except ValueError:
        raise TraceError(f"{name} holds lists of several lengths: expected one axis, [tokens]") from None
    if array.ndim != 1:
        raise TraceError(f"{name} has shape {array.shape}: expected one axis, [tokens], without a batch axis")
    if not len(array):
        raise TraceError(f"{name} is empty: give at least one token")
    if not (np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_):
        raise TraceError(f"{name} holds {array.dtype} values: expected whole numbers")
    return array.astype(np.int64)


def _checked_array(name: str, given: Vectors, axes: str) -> npt.NDArray[np.float32]:
    try:
        array = np.array(given, dtype=np.float32)
    except (TypeError, ValueError):
        raise TraceError(f"{name} is no array of numbers: expected {axes}") from None
    n_axes = axes.count(",") + 1
    if array.ndim != n_axes or not array.size:
        count = {2: "two", 3: "three"}[n_axes]
        raise TraceError(f"{name} has shape {array.shape}: expected {count} axes, {axes}, without a batch axis")
    return array
