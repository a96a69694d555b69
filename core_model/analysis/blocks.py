"""Walking a head's matrix in whole rows, a block at a time.

Shape letters: N rows of a block, M keys that any of them can see.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from core_model.cancel import CancelToken
from core_model.trace.scores import HeadScores

_CELLS = 1 << 20
"""Weights held at once: 4 MiB of float32."""


def row_blocks(
    head: HeadScores, cancel: CancelToken | None = None, *, rows: slice | None = None
) -> Iterator[tuple[slice, torch.Tensor]]:
    """Rows and their exact weights [N, M] over the keys 0 ... M - 1, M being what the last row of the block can see.

    Keys left out are masked for every row of the block; `rows` are those walked, all by default. Raises Cancelled
    between blocks.
    """
    first, stop = (0, head.n_queries) if rows is None else (rows.start, rows.stop)
    n_rows = max(16, _CELLS // head.n_keys)
    is_causal = head.inputs.spec.mask.causal and not head.inputs.spec.mask.n_prefix
    for start in range(first, stop, n_rows):
        if cancel is not None:
            cancel.check()
        block = slice(start, min(start + n_rows, stop))
        n_seen = min(head.n_keys, block.stop + head.inputs.query_start) if is_causal else head.n_keys
        yield block, head.weights(block, slice(0, n_seen))
