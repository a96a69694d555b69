"""Local windows, windows with global tokens, and prefixes on CUDA: FlexAttention (Dong et al. 2024, arXiv:2412.05496).

Its kernel is compiled for the mask's own predicate, skips blocks of keys that a block of queries cannot see, and gives
each row's log-sum-exp, so no block of a mask is ever made. Where it cannot be compiled (no Triton, no C compiler, sizes
it does not take) `core_model.nn.attend` goes its own way in blocks of rows, and the reason is logged once.

What was run: on a CPU, predicate, score function and results in the unfused form, and the blocks of the mask, against
the dense computation (tests); by hand with torch 2.13, outputs of the kernel compiled for a CPU, which has no
log-sum-exp there. What was not: the CUDA kernel, for want of a GPU.

Shape letters: B batch, N queries, M keys, H heads, K key heads, D head size, I blocks of queries, J blocks of keys.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import torch
from torch.nn.attention.flex_attention import AuxRequest, BlockMask, flex_attention

from core_model.config import MaskSpec
from core_model.nn import masks
from core_model.nn.scores import HeadInputs

_BLOCK = 128
"""Queries and keys of a block of the mask: FlexAttention's own default."""
_SHORTEST = 4096
"""Queries and keys from which on the seconds a kernel takes to compile are worth it: chosen, not measured."""

_log = logging.getLogger(__name__)
_refused: set[tuple[int, torch.dtype]] = set()
"""Head sizes and dtypes for which the kernel did not compile or run."""


def takes(heads: HeadInputs) -> bool:
    """Whether FlexAttention is to compute this attention: on CUDA, long, with nothing but a mask and a soft cap."""
    is_plain = not heads.is_biased and heads.sinks_H is None and heads.key_mask_BM is None
    is_softmax = heads.spec.normalizer == "softmax"
    is_long = min(heads.n_queries, heads.n_keys) >= _SHORTEST
    return is_long and heads.q_BHND.device.type == "cuda" and is_plain and is_softmax and _kind(heads) not in _refused


def attend_compiled(heads: HeadInputs, v_BKMD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """`attend_flex` by the compiled kernel; None, from then on for heads of this kind, where it does not compile."""
    try:
        return attend_flex(heads, v_BKMD, _compiled_kernel())
    except torch.OutOfMemoryError:
        raise
    except Exception as reason:  # whatever the compiler stumbles over: there is another way to the same numbers
        _refused.add(_kind(heads))
        _log.warning("FlexAttention does not compile here, so windows are computed in blocks of rows: %s", reason)
        return None


def attend_flex(
    heads: HeadInputs, v_BKMD: torch.Tensor, kernel: Callable[..., Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weighted values [B, H, N, D] and each row's log-sum-exp [B, H, N]; `kernel` is torch's `flex_attention`."""
    out_BHND, aux = kernel(
        heads.q_BHND,
        heads.k_BKMD,
        v_BKMD,
        score_mod=None if heads.spec.soft_cap is None else _soft_capped(heads.spec.soft_cap),
        block_mask=block_mask(heads.spec.mask, heads.query_start, heads.n_queries, heads.n_keys, heads.q_BHND.device),
        scale=heads.spec.scale,
        enable_gqa=heads.q_BHND.shape[1] != heads.k_BKMD.shape[1],
        return_aux=AuxRequest(lse=True),
    )
    return out_BHND, aux.lse


@lru_cache(maxsize=8)
@torch.inference_mode(False)  # what is kept may be used in training later
def block_mask(mask: MaskSpec, query_start: int, n_queries: int, n_keys: int, device: torch.device) -> BlockMask:
    """Which blocks of keys each block of queries sees in part or whole, and the predicate that decides within a block.

    Found block by block: a mask of all queries and keys is not made.
    """

    def sees(batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return masks.sees(mask, query + query_start, key)

    n_rows, n_cols = -(-n_queries // _BLOCK), -(-n_keys // _BLOCK)
    found = {kind: ([0] * n_rows, [[0] * n_cols for _ in range(n_rows)]) for kind in ("some", "all")}
    for i in range(n_rows):
        last = min((i + 1) * _BLOCK, n_queries) - 1
        queries = range(query_start + i * _BLOCK, query_start + last + 1)
        for j in _block_columns(mask, queries, n_keys):
            keys = range(j * _BLOCK, min((j + 1) * _BLOCK, n_keys))
            is_whole = len(queries) == len(keys) == _BLOCK
            kind = masks.coverage(mask, queries, keys)
            if kind == "none":
                continue
            counts, columns = found[kind if is_whole else "some"]
            columns[i][counts[i]] = j
            counts[i] += 1
    counts_II, columns_IJ = zip(*found.values(), strict=True)
    n_some_I, n_all_I = (torch.tensor(x, dtype=torch.int32, device=device)[None, None] for x in counts_II)
    some_IJ, all_IJ = (torch.tensor(x, dtype=torch.int32, device=device)[None, None] for x in columns_IJ)
    return BlockMask.from_kv_blocks(
        n_some_I, some_IJ, n_all_I, all_IJ, BLOCK_SIZE=_BLOCK, mask_mod=sees, seq_lengths=(n_queries, n_keys)
    )


def _block_columns(mask: MaskSpec, queries: range, n_keys: int) -> list[int]:
    """The blocks of keys that touch what these queries may see, in order."""
    spans = masks.key_spans(mask, queries[0], queries[-1], n_keys)
    return sorted({j for start, stop in spans for j in range(start // _BLOCK, -(-stop // _BLOCK))})


@cache
def _soft_capped(cap: float) -> Callable[..., torch.Tensor]:
    def capped(score: torch.Tensor, *place: torch.Tensor) -> torch.Tensor:
        return torch.tanh(score / cap) * cap

    return capped


@cache
def _compiled_kernel() -> Callable[..., Any]:
    """A graph in one piece: at the limit of recompilations torch would else make the matrix of all scores."""
    return torch.compile(flex_attention, fullgraph=True)


def _kind(heads: HeadInputs) -> tuple[int, torch.dtype]:
    return heads.spec.head_size, heads.q_BHND.dtype
