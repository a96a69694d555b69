"""Walking a head's matrix in whole rows, a block at a time.

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
    """Rows, the keys that any of them can see, and their exact weights [N, M].

    Keys left out are masked for every row of the block, so a window costs time as its length does; `rows` are those
    walked, all by default. Raises Cancelled between blocks.
    """
    start, stop = (0, head.n_queries) if rows is None else (rows.start, rows.stop)
    while start < stop:
        if cancel is not None:
            cancel.check()
        seen = head.reach(slice(start, start + 1))
        # Later rows of the block may each see one key more.
        n_rows = max(16, min(isqrt(_CELLS // 2), _CELLS // 2 // (seen.stop - seen.start)))
        block = slice(start, min(start + n_rows, stop))
        keys = head.reach(block)
        yield block, keys, head.weights(block, keys)
        start = block.stop
