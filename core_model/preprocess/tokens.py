"""What a person reads of the vectors that patches of a picture and frames of a sound become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from core_model.config import PatchEmbedding
from core_model.tokenize import Encoding, Frames, Patches

Kind = TypeVar("Kind", bound=Encoding)


def patch_tokens(patches: PatchEmbedding, size: tuple[int, int]) -> Patches:
    """Names of what pixels of that size become: "class", then "register 0" ..., then "patch 0,0" ... row by row.

    The second of two class tokens is DeiT's "distillation"; of more, all but the first are registers with a position.
    """
    n_learned = patches.n_class_tokens + patches.n_registers
    first = ["class"] if patches.has_class_token else []
    names = [*first, *(f"register {i}" for i in range(n_learned - len(first)))][:n_learned]
    if patches.has_class_token and patches.n_class_tokens == 2:
        names[1:] = ["distillation", *(f"register {i}" for i in range(n_learned - 2))]
    n_rows, n_columns = patches.grid_of(size)
    placed = [f"patch {row},{column}" for row in range(n_rows) for column in range(n_columns)]
    return _encoding(Patches, [*names, *placed], n_before=n_learned, n_after=0)


def frame_tokens(n_frames: int, seconds_each: float, duration: float) -> Frames:
    """The time at the middle of each frame, "0.00 s" ...; those after the sound's end count as added around it."""
    times = [i * seconds_each for i in range(n_frames)]
    digits = 2 if round(seconds_each * 1000) % 10 == 0 else 3
    n_after = sum(time >= duration for time in times)
    return _encoding(Frames, [f"{time:.{digits}f} s" for time in times], n_before=0, n_after=n_after)


def _encoding(kind: type[Kind], texts: Sequence[str], *, n_before: int, n_after: int) -> Kind:
    """Vectors that are no tokens of a vocabulary: each has its place for an id. Some were added before, some after."""
    n = len(texts)
    is_added = [i < n_before or i >= n - n_after for i in range(n)]
    return kind(
        ids=tuple(range(n)),
        texts=tuple(texts),
        offsets=(None,) * n,
        type_ids=(0,) * n,
        special=tuple(is_added),
        sequence=tuple(None if added else 0 for added in is_added),
    )
