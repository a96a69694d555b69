"""Values weighted by attention, at memory linear in length: the fused kernel, or blocks of rows over the keys they see.

Shape letters: B batch, N queries, M keys, H heads, K key heads, D head size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch.nn import functional

from core_model.cancel import Progress
from core_model.config import MaskSpec
from core_model.nn import flex, masks
from core_model.nn.scores import HeadInputs, bias_block, grouped, normalize, scores, take_keys, visible_block
from core_model.nn.tap import PIECE_PRODUCTS

_BLOCK_SCORES, _OWN_SCORES = 1 << 23, 1 << 21
"""Scores a block of rows may have at once where the fused kernel is given a mask, and where it cannot do the work: 32
and 8 MiB in float32. What is computed here goes over a block many times: one that stays in the cache is twice as fast.
"""
_NEXT_TO_NOTHING = 1e-30
"""A weight that changes nothing in a sum that is 1 in float32. Without sinks the largest of a row is 1 / n at least."""


def attend(
    heads: HeadInputs,
    v_BKMD: torch.Tensor,
    *,
    dropout: float = 0.0,
    want_logsumexp: bool = False,
    between: Progress | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Weighted values [B, H, N, D] and, where asked for and known exactly, each row's log-sum-exp [B, H, N], sink
    included; that of a row that sees no key says nothing.

    Memory is linear in length: the fused kernel where it can express the scores, else FlexAttention where it compiles,
    else blocks of rows over the keys they see. `between` is called with the share done between pieces of long work on a
    CPU, and may raise to stop it.
    """
    dtype, is_on_cpu = heads.q_BHND.dtype, heads.q_BHND.device.type == "cpu"
    is_inference = not dropout and not torch.is_grad_enabled()
    if want_logsumexp and is_on_cpu and is_inference:
        if dtype in (torch.bfloat16, torch.float16):
            return _in_float32(heads, v_BKMD, between)
        if dtype == torch.float32 and _has_fusible_keys(heads):
            return _with_sinks(heads, v_BKMD, between)
    want_logsumexp = want_logsumexp and dtype == torch.float32
    if _is_one_call(heads):
        is_long = _n_products(heads) > PIECE_PRODUCTS
        if is_long and is_on_cpu and is_inference and between is not None:
            out_BHND, logsumexp_BHN = _attend_in_pieces(heads, v_BKMD, between)
            return out_BHND, logsumexp_BHN if want_logsumexp else None
        mask = _KernelMask(causal=heads.spec.mask.causal)
        return _fused(heads.q_BHND, heads.k_BKMD, v_BKMD, mask, heads.spec.scale, dropout, want_logsumexp)
    if not dropout and flex.takes(heads):
        computed = flex.attend_compiled(heads, v_BKMD)
        if computed is not None:
            return computed[0], computed[1] if want_logsumexp else None
    blocks = _each_block(heads, v_BKMD, dropout, want_logsumexp, between)
    return _joined(list(blocks), axis=2) if torch.is_grad_enabled() else _filled(blocks, heads.n_queries)


def _each_block(
    heads: HeadInputs, v_BKMD: torch.Tensor, dropout: float, want_logsumexp: bool, between: Progress | None
) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
    """What `attend` gives, in blocks of rows one after the other."""
    for rows in _row_blocks(heads):
        block = _attend_rows(heads, v_BKMD, rows, dropout, want_logsumexp)
        if between is not None:
            between(rows.stop / heads.n_queries)
        yield block
        del block


def _filled(
    blocks: Iterator[tuple[torch.Tensor, torch.Tensor | None]], n_queries: int
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """`_joined` along the rows, each block written where it belongs.

    Small results kept between large blocks of scores would keep their memory from being used again: a pass over 20 000
    tokens of a narrow model then takes 100 times what it needs.
    """
    filled: tuple[torch.Tensor, torch.Tensor | None] | None = None
    start = 0
    for block_BHND, block_BHN in blocks:
        n_rows = block_BHND.shape[2]
        if n_rows == n_queries:
            return block_BHND, block_BHN
        if filled is None:
            filled = _longer(block_BHND, n_queries), None if block_BHN is None else _longer(block_BHN, n_queries)
        filled[0][:, :, start : start + n_rows] = block_BHND
        if filled[1] is not None and block_BHN is not None:
            filled[1][:, :, start : start + n_rows] = block_BHN
        start += n_rows
    assert filled is not None
    return filled


def _longer(block_BHN: torch.Tensor, n_rows: int) -> torch.Tensor:
    """Room for so many rows of what is like a block [B, H, N, ...]."""
    return block_BHN.new_empty(*block_BHN.shape[:2], n_rows, *block_BHN.shape[3:])


def _joined(
    parts: Sequence[tuple[torch.Tensor, torch.Tensor | None]], axis: int
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Outputs one behind the other, and log-sum-exps where all have them."""
    if len(parts) == 1:
        return parts[0]
    outputs, logsumexps = zip(*parts, strict=True)
    has_logsumexp = all(part is not None for part in logsumexps)
    return torch.cat(outputs, dim=axis), torch.cat(logsumexps, dim=axis) if has_logsumexp else None


def _in_float32(
    heads: HeadInputs, v_BKMD: torch.Tensor, between: Progress | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attention of half precision, computed in full.

    In half precision the kernel's exponentials are coarse (5e-5): exact scores would not add up to its log-sum-exp. To
    compute that on its own takes longer than to have all of it in float32.
    """
    wide = replace(heads, q_BHND=heads.q_BHND.float(), k_BKMD=heads.k_BKMD.float())
    out_BHND, logsumexp_BHN = attend(wide, v_BKMD.float(), want_logsumexp=True, between=between)
    return out_BHND.to(heads.q_BHND.dtype), logsumexp_BHN


def _has_fusible_keys(heads: HeadInputs) -> bool:
    """Whether the fused kernel could do it without the sinks."""
    return heads.sinks_H is not None and _is_fusible(replace(heads, sinks_H=None))


def _with_sinks(
    heads: HeadInputs, v_BKMD: torch.Tensor, between: Progress | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What sinks leave of the values: the share of the keys in each row's sum of exponentials."""
    assert heads.sinks_H is not None
    without = replace(heads, sinks_H=None)
    out_BHND, keys_BHN = attend(without, v_BKMD, want_logsumexp=True, between=between)
    assert keys_BHN is not None
    logsumexp_BHN = torch.logaddexp(keys_BHN, heads.sinks_H.float()[:, None])
    return out_BHND * (keys_BHN - logsumexp_BHN).exp()[..., None], logsumexp_BHN


def _is_one_call(heads: HeadInputs) -> bool:
    """Whether one call of the fused kernel does it all: no mask to make, nothing to add."""
    mask = heads.spec.mask
    squarely_causal = mask == MaskSpec(causal=True) and heads.n_queries == heads.n_keys and not heads.query_start
    is_plain = _is_fusible(heads) and not heads.is_biased and heads.key_mask_BM is None
    return is_plain and (squarely_causal or masks.hides_nothing(mask))


def _n_products(heads: HeadInputs) -> int:
    """Multiply-adds of all scores, seen or not."""
    return heads.q_BHND.numel() * heads.n_keys


def _attend_in_pieces(
    heads: HeadInputs, v_BKMD: torch.Tensor, between: Progress
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What one call of the kernel gives, head by head, a head too long for one piece in blocks of rows.

    The same bits, but for those where the causal triangle of a head was cut.
    """
    n_heads, n_queries = heads.q_BHND.shape[1], heads.n_queries
    parts = []
    for head in range(n_heads):
        own, key_head = heads.head(head), head * v_BKMD.shape[1] // n_heads
        v_B1MD = v_BKMD[:, key_head : key_head + 1]
        blocks = []
        for rows in _piece_rows(own):
            blocks.append(_attend_piece(own, v_B1MD, rows))
            between((head + rows.stop / n_queries) / n_heads)
        parts.append(_joined(blocks, axis=2))
    return _joined(parts, axis=1)


def _piece_rows(head: HeadInputs) -> Iterator[slice]:
    """All rows of a head if they are one piece, else blocks of them as long as the kernel's own (256) or a multiple."""
    n, n_rows = head.n_queries, PIECE_PRODUCTS * head.n_queries // _n_products(head)
    n_rows = n if n_rows >= n else max(256, n_rows // 256 * 256)
    return (slice(start, min(start + n_rows, n)) for start in range(0, n, n_rows))


def _attend_piece(head: HeadInputs, v_B1MD: torch.Tensor, rows: slice) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Some rows of one head. Causal ones see all keys before the block, and a triangle of their own.

    The parts, each a softmax of its own, add up by their shares of the row's sum of exponentials.
    """
    q_B1ND, k_B1MD, scale = head.q_BHND[:, :, rows], head.k_BKMD, head.spec.scale
    if not head.spec.mask.causal:
        return _fused(q_B1ND, k_B1MD, v_B1MD, _KernelMask(), scale, 0.0, True)
    own_B1ND, own_B1N = _fused(
        q_B1ND, k_B1MD[:, :, rows], v_B1MD[:, :, rows], _KernelMask(causal=True), scale, 0.0, True
    )
    if not rows.start:
        return own_B1ND, own_B1N
    before = slice(0, rows.start)
    before_B1ND, before_B1N = _fused(
        q_B1ND, k_B1MD[:, :, before], v_B1MD[:, :, before], _KernelMask(), scale, 0.0, True
    )
    assert own_B1N is not None and before_B1N is not None
    logsumexp_B1N = torch.logaddexp(own_B1N, before_B1N)
    own_share, before_share = ((part_B1N - logsumexp_B1N).exp()[..., None] for part_B1N in (own_B1N, before_B1N))
    return (own_B1ND * own_share + before_B1ND * before_share).to(own_B1ND.dtype), logsumexp_B1N


@dataclass(frozen=True, kw_only=True, eq=False)
class _KernelMask:
    """A mask as the fused kernel takes it: the causal triangle, or True/False, or numbers to add, [B, H, N, M]."""

    causal: bool = False
    block_BHNM: torch.Tensor | None = None


def _is_fusible(heads: HeadInputs) -> bool:
    """Whether scaled_dot_product_attention can express the scores and the normaliser."""
    return heads.spec.soft_cap is None and heads.sinks_H is None and heads.spec.normalizer == "softmax"


def _row_blocks(heads: HeadInputs) -> Iterator[slice]:
    """Blocks of rows whose scores, over the keys they can see, stay within what a block may have.

    With a window a block is hardly longer than it: each row would see fewer and fewer of the block's keys.
    """
    n_batch, n_heads = heads.q_BHND.shape[:2]
    shares_mask = _is_fusible(heads) and not heads.is_biased
    n_matrices, n_least = (n_batch, 64) if shares_mask else (n_batch * n_heads, 16)
    n_scores = _OWN_SCORES if not _is_fusible(heads) and heads.q_BHND.device.type == "cpu" else _BLOCK_SCORES
    window = heads.spec.mask.window
    n_most = heads.n_queries if window is None else max(window, 256)
    start = 0
    while start < heads.n_queries:
        first, last = heads.query_start + start, heads.query_start + min(start + n_most, heads.n_queries) - 1
        n_seen = sum(stop - begin for begin, stop in masks.key_spans(heads.spec.mask, first, last, heads.n_keys))
        n_rows = min(n_most, max(n_least, n_scores // (n_seen * n_matrices)))
        yield slice(start, min(start + n_rows, heads.n_queries))
        start += n_rows


def _attend_rows(
    heads: HeadInputs, v_BKMD: torch.Tensor, rows: slice, dropout: float, want_logsumexp: bool
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """`attend` for a block of rows, over the keys that any of them can see."""
    positions = heads.positions(rows)
    spans = masks.key_spans(heads.spec.mask, positions[0], positions[-1], heads.n_keys)
    keys = [range(*span) for span in spans]
    v_BKMD = take_keys(v_BKMD, keys)
    if not _is_fusible(heads):
        s_BHNM = scores(heads, rows, keys)
        weights_BHNM = normalize(s_BHNM, heads)
        has_logsumexp = want_logsumexp and heads.spec.normalizer == "softmax"
        logsumexp_BHN = _logsumexp(s_BHNM, weights_BHNM, heads.sinks_H) if has_logsumexp else None
        weights_BHNM = functional.dropout(weights_BHNM.to(v_BKMD.dtype), dropout, training=dropout > 0)
        out_BKGND = torch.matmul(grouped(weights_BHNM, v_BKMD.shape[1]), v_BKMD[:, :, None])
        return out_BKGND.flatten(1, 2), logsumexp_BHN
    block_BHNM = visible_block(heads, rows, keys)
    if heads.is_biased:
        bias_BHNM = bias_block(heads, rows, keys).to(heads.q_BHND.dtype)
        block_BHNM = torch.where(block_BHNM, bias_BHNM, float("-inf"))
    mask = _KernelMask(block_BHNM=block_BHNM)
    q_BHND, k_BKMD = heads.q_BHND[:, :, rows], take_keys(heads.k_BKMD, keys)
    return _fused(q_BHND, k_BKMD, v_BKMD, mask, heads.spec.scale, dropout, want_logsumexp)


def _logsumexp(s_BHNM: torch.Tensor, weights_BHNM: torch.Tensor, sinks_H: torch.Tensor | None) -> torch.Tensor:
    """Each row's log-sum-exp [B, H, N], sink included: its largest score less the logarithm of its largest weight.

    Where a sink leaves next to nothing for that weight, whose logarithm is then coarse, it is the sink itself.
    """
    score_BHN, weight_BHN = s_BHNM.detach().amax(-1), weights_BHNM.detach().amax(-1)
    nothing = float("-inf") if sinks_H is None else sinks_H.detach().float()[:, None]
    return torch.where(weight_BHN < _NEXT_TO_NOTHING, nothing, score_BHN - weight_BHN.log())


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
    is_bias_trained = block_BHNM is not None and block_BHNM.requires_grad
    if want_logsumexp and q_BHND.device.type == "cpu" and not dropout and not is_bias_trained:
        if block_BHNM is not None and block_BHNM.dtype == torch.bool:
            block_BHNM = torch.zeros_like(block_BHNM, dtype=q_BHND.dtype).masked_fill_(~block_BHNM, float("-inf"))
        # Called without the checks around it, the kernel reads a head's dimensions as neighbours in memory, and all in
        # one dtype: under autocast values are of another than queries and keys that went through a norm.
        k_BKMD, v_BKMD = k_BKMD.to(q_BHND.dtype), v_BKMD.to(q_BHND.dtype)
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
        enable_gqa=q_BHND.shape[1] != k_BKMD.shape[1],
    )
    return out_BHND, None
