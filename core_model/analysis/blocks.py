"""Walking a head's matrix, a block of rows at a time, each in the pieces of keys it can see.

Shape letters: N rows of a block, M keys that any of them can see.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import torch

from core_model.cancel import CancelToken
from core_model.trace.scores import HeadScores

_CELLS = 1 << 20
"""Weights held at once: 4 MiB of float32."""


def row_blocks(
    head: HeadScores, cancel: CancelToken | None = None, *, rows: slice | None = None
) -> Iterator[tuple[slice, slice, torch.Tensor]]:
    """Rows, a piece of the keys that any of them can see, and their exact weights [N, M].

    Keys in no piece are masked for every row of the block, so a window costs time as its length does, with global
    tokens before it too; rows that see no key have no piece. `rows` are those walked, all by default. Raises Cancelled
    between blocks.
    """
    start, stop = (0, head.n_queries) if rows is None else (rows.start, rows.stop)
    while start < stop:
        if cancel is not None:
            cancel.check()
        n_seen = sum(keys.stop - keys.start for keys in head.reach(slice(start, start + 1)))
        # Later rows of the block may each see one key more.
        n_rows = max(16, min(isqrt(_CELLS // 2), _CELLS // 2 // max(1, n_seen)))
        block = slice(start, min(start + n_rows, stop))
        for keys in head.reach(block):
            yield block, keys, head.weights(block, keys)
        start = block.stop
