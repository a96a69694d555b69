"""Where in a picture a query looks: one row of attention laid back onto the grid of patches.

A stack of patches reads class tokens and registers first, then the patches row by row (Dosovitskiy et al. 2021), so key
n + r C + c is the patch in row r and column c of R x C, n of them standing before. With the class token as the query
this is the picture of Caron et al. 2021, "Emerging Properties in Self-Supervised Vision Transformers", figure 1.
"""

from __future__ import annotations

from core_model.config import PatchEmbedding
from core_model.results import PatchAttention, read_only
from core_model.trace.trace import Trace


def patch_attention(
    trace: Trace, patches: PatchEmbedding, size: tuple[int, int], site: str, layer: int, head: int, query: int
) -> PatchAttention:
    """The exact weights of one query over the patches of a picture of `size`, rows and columns of pixels.

    The query may be a patch itself, something before them, or the probe that pools them.
    """
    row_M = trace.row(site, layer, head, query)
    n_before = patches.n_class_tokens + patches.n_registers
    grid = patches.grid_of(size)
    is_patch = query >= n_before and trace.shape(site)[2] == len(row_M)
    return PatchAttention(
        query=query,
        place=divmod(query - n_before, grid[1]) if is_patch else None,
        weights=read_only(row_M[n_before:].reshape(grid)),
        before=read_only(row_M[:n_before]),
    )
