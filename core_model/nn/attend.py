"""Values weighted by attention, at memory linear in length: the fused kernel, or blocks of rows over the keys they see.

Shape letters: B batch, N queries, M keys, H heads, K key heads, D head size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.nn import functional

from core_model.config import MaskSpec
from core_model.nn import masks
from core_model.nn.scores import HeadInputs, bias_block, grouped, normalize, scores, take_keys, visible_block

_BLOCK_SCORES = 1 << 23
"""Scores a block of rows may hold at once where the fused kernel cannot do all the work: 32 MiB in float32."""


def attend(
    heads: HeadInputs, v_BKMD: torch.Tensor, *, dropout: float = 0.0, want_logsumexp: bool = False
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Weighted values [B, H, N, D] and, where asked and where the kernel has it, each row's log-sum-exp [B, H, N].

    Memory is linear in length: the fused kernel where it can express the scores, else blocks of rows over the keys
    they see.
    """
    spec = heads.spec
    squarely_causal = spec.mask == MaskSpec(causal=True) and heads.n_queries == heads.n_keys and not heads.query_start
    simple_mask = squarely_causal or masks.hides_nothing(spec.mask)
    if _is_fusible(heads) and not heads.is_biased and simple_mask and heads.key_mask_BM is None:
        mask = _KernelMask(causal=squarely_causal)
        return _fused(heads.q_BHND, heads.k_BKMD, v_BKMD, mask, heads.spec.scale, dropout, want_logsumexp)
    blocks = [_attend_rows(heads, v_BKMD, rows, dropout, want_logsumexp) for rows in _row_blocks(heads)]
    if len(blocks) == 1:
        return blocks[0]
    outputs, logsumexps = zip(*blocks, strict=True)
    has_logsumexp = all(part is not None for part in logsumexps)
    return torch.cat(outputs, dim=2), torch.cat(logsumexps, dim=2) if has_logsumexp else None


@dataclass(frozen=True, kw_only=True, eq=False)
class _KernelMask:
    """A mask as the fused kernel takes it: the causal triangle, or True/False, or numbers to add, [B, H, N, M]."""

    causal: bool = False
    block_BHNM: torch.Tensor | None = None


def _is_fusible(heads: HeadInputs) -> bool:
    """Whether scaled_dot_product_attention can express the scores and the normaliser."""
    return heads.spec.soft_cap is None and heads.sinks_H is None and heads.spec.normalizer == "softmax"


def _row_blocks(heads: HeadInputs) -> Iterator[slice]:
    """Blocks of rows whose scores, over the keys they can see, stay within _BLOCK_SCORES.

    With a window a block is hardly longer than it: each row would see fewer and fewer of the block's keys.
    """
    n_batch, n_heads = heads.q_BHND.shape[:2]
    n_matrices = n_batch if _is_fusible(heads) and not heads.is_biased else n_batch * n_heads
    window = heads.spec.mask.window
    n_most = heads.n_queries if window is None else max(window, 256)
    start = 0
    while start < heads.n_queries:
        first, last = heads.query_start + start, heads.query_start + min(start + n_most, heads.n_queries) - 1
        n_seen = sum(stop - begin for begin, stop in masks.key_spans(heads.spec.mask, first, last, heads.n_keys))
        n_rows = min(n_most, max(64, _BLOCK_SCORES // (n_seen * n_matrices)))
        yield slice(start, min(start + n_rows, heads.n_queries))
        start += n_rows


def _attend_rows(
    heads: HeadInputs, v_BKMD: torch.Tensor, rows: slice, dropout: float, want_logsumexp: bool
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """`attend` for a block of rows, over the keys that any of them can see."""
    first, last = heads.query_start + rows.start, heads.query_start + rows.stop - 1
    spans = masks.key_spans(heads.spec.mask, first, last, heads.n_keys)
    device = heads.q_BHND.device
    key_M = torch.cat([torch.arange(start, stop, device=device) for start, stop in spans])
    v_BKMD = take_keys(v_BKMD, key_M)
    if not _is_fusible(heads):
        weights_BHNM = normalize(scores(heads, rows, key_M), heads).to(v_BKMD.dtype)
        weights_BHNM = functional.dropout(weights_BHNM, dropout, training=dropout > 0)
        return torch.matmul(grouped(weights_BHNM, v_BKMD.shape[1]), v_BKMD[:, :, None]).flatten(1, 2), None
    block_BHNM = visible_block(heads, rows, key_M)
    if heads.is_biased:
        bias_BHNM = bias_block(heads, rows, key_M).to(heads.q_BHND.dtype)
        block_BHNM = torch.where(block_BHNM, bias_BHNM, float("-inf"))
        # Exact scores do not add up to the log-sum-exp of scores whose bias was rounded.
        want_logsumexp = want_logsumexp and bias_BHNM.dtype == torch.float32
    mask = _KernelMask(block_BHNM=block_BHNM)
    q_BHND, k_BKMD = heads.q_BHND[:, :, rows], take_keys(heads.k_BKMD, key_M)
    return _fused(q_BHND, k_BKMD, v_BKMD, mask, heads.spec.scale, dropout, want_logsumexp)


def _fused(
    q_BHND: torch.Tensor,
    k_BKMD: torch.Tensor,
    v_BKMD: torch.Tensor,
    mask: _KernelMask,
    scale: float,
    dropout: float,
    want_logsumexp: bool,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The fused kernel. On a CPU it computes the log-sum-exp anyway, so there it is had for nothing."""
    block_BHNM = mask.block_BHNM
    n_groups = q_BHND.shape[1] // k_BKMD.shape[1]
    if want_logsumexp and q_BHND.device.type == "cpu" and not dropout:
        if n_groups > 1:
            k_BKMD, v_BKMD = k_BKMD.repeat_interleave(n_groups, 1), v_BKMD.repeat_interleave(n_groups, 1)
        if block_BHNM is not None and block_BHNM.dtype == torch.bool:
            block_BHNM = torch.zeros_like(block_BHNM, dtype=q_BHND.dtype).masked_fill_(~block_BHNM, float("-inf"))
        # Called without the checks around it, the kernel reads a head's dimensions as neighbours in memory.
        q_BHND, k_BKMD, v_BKMD = (x if x.stride(-1) == 1 else x.contiguous() for x in (q_BHND, k_BKMD, v_BKMD))
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q_BHND, k_BKMD, v_BKMD, 0.0, mask.causal, attn_mask=block_BHNM, scale=scale
        )
    out_BHND = functional.scaled_dot_product_attention(
        q_BHND,
        k_BKMD,
        v_BKMD,
        attn_mask=block_BHNM,
        dropout_p=dropout,
        is_causal=mask.causal,
        scale=scale,
        enable_gqa=n_groups > 1,
    )
    return out_BHND, None
