"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2): the module, and its scores as pure functions.

`scores` is the one definition of what query i gives key j before the normaliser: scale, soft-cap, position bias, mask.
The model's own forward pass, `core_model.trace.scores` and everything drawn on a screen use it, or a fused kernel that
tests hold against it.

Shape letters: B batch, N queries, M keys, H heads, K key heads, G query heads a key head, D head size, C model width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional

from core_model.config import (
    AlibiPositions,
    AttentionSpec,
    BucketedPositions,
    DisentangledPositions,
    MaskSpec,
    QueryKeyNorm,
    RotaryPositions,
)
from core_model.nn import masks
from core_model.nn.cache import KeyValueCache
from core_model.nn.disentangled import Distances, distance_scores
from core_model.nn.norms import make_norm
from core_model.nn.positions import alibi_slopes, rotate, score_bias
from core_model.nn.tap import Tap

_BLOCK_SCORES = 1 << 23
"""Scores a block of rows may hold at once where the fused kernel cannot do all the work: 32 MiB in float32."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadInputs:
    """What one attention computes its scores from: references to the tensors it made anyway, no copies.

    Queries stand at positions query_start, query_start + 1, ...; keys at 0, 1, ... `bias_weights` are ALiBi's slopes
    [H] or T5's table [buckets, H], `distances` what DeBERTa's content meets; `key_mask_BM` is False at padding;
    `logsumexp_BHN` is there where the kernel gave it.
    """

    spec: AttentionSpec
    q_BHND: torch.Tensor
    k_BKMD: torch.Tensor
    query_start: int = 0
    key_mask_BM: torch.Tensor | None = None
    bias_weights: torch.Tensor | None = None
    distances: Distances | None = None
    sinks_H: torch.Tensor | None = None
    logsumexp_BHN: torch.Tensor | None = None

    @property
    def is_biased(self) -> bool:
        """Whether position adds something to the scores."""
        return self.bias_weights is not None or self.distances is not None

    @property
    def n_queries(self) -> int:
        """Number of rows."""
        return self.q_BHND.shape[2]

    @property
    def n_keys(self) -> int:
        """Number of columns."""
        return self.k_BKMD.shape[2]

    def head(self, head: int) -> HeadInputs:
        """The same for one head alone: every H and K axis has size 1."""
        key_head = head // (self.q_BHND.shape[1] // self.k_BKMD.shape[1])
        one, shared = slice(head, head + 1), slice(key_head, key_head + 1)
        return replace(
            self,
            q_BHND=self.q_BHND[:, one],
            k_BKMD=self.k_BKMD[:, shared],
            bias_weights=None if self.bias_weights is None else self.bias_weights[..., one],
            distances=None if self.distances is None else self.distances.of_heads(one),
            sinks_H=None if self.sinks_H is None else self.sinks_H[one],
            logsumexp_BHN=None if self.logsumexp_BHN is None else self.logsumexp_BHN[:, one],
        )

    def kept(self) -> HeadInputs:
        """The same outside of autograd, with copies of the few weights its scores read: they may still be trained."""
        return replace(
            self,
            q_BHND=self.q_BHND.detach(),
            k_BKMD=self.k_BKMD.detach(),
            bias_weights=None if self.bias_weights is None else self.bias_weights.detach().clone(),
            distances=None if self.distances is None else self.distances.detached(),
            sinks_H=None if self.sinks_H is None else self.sinks_H.detach().clone(),
            logsumexp_BHN=None if self.logsumexp_BHN is None else self.logsumexp_BHN.detach(),
        )


def visible_block(heads: HeadInputs, rows: slice, key_M: torch.Tensor) -> torch.Tensor:
    """True [B or 1, 1, N, M] where a query of `rows` may see the key at index key_M[j]."""
    query_N = _positions(heads, rows)
    seen_BHNM = masks.visible(heads.spec.mask, query_N, key_M)[None, None]
    if heads.key_mask_BM is not None:
        seen_BHNM = seen_BHNM & heads.key_mask_BM[:, key_M][:, None, None, :]
    return seen_BHNM


def _positions(heads: HeadInputs, rows: slice) -> torch.Tensor:
    """The positions [N] of the queries of a slice, which may step."""
    indices = range(*rows.indices(heads.n_queries))
    return torch.arange(indices.start, indices.stop, indices.step, device=heads.q_BHND.device) + heads.query_start


def scores(heads: HeadInputs, rows: slice, key_M: torch.Tensor) -> torch.Tensor:
    """Scores [B, H, N, M] in float32 of the queries in `rows` for the keys at key_M; masked ones are -inf.

    soft_cap(q . k * scale) + position bias, whatever the dtype of the model.
    """
    spec = heads.spec
    q_BKGND = _grouped(heads.q_BHND[:, :, rows].float() * spec.scale, heads.k_BKMD.shape[1])
    k_BKMD = take_keys(heads.k_BKMD, key_M).float()
    s_BHNM = torch.matmul(q_BKGND, k_BKMD[:, :, None].transpose(-1, -2)).flatten(1, 2)
    if spec.soft_cap is not None:
        s_BHNM = torch.tanh(s_BHNM / spec.soft_cap) * spec.soft_cap
    if heads.is_biased:
        s_BHNM = s_BHNM + _bias_block(heads, rows, key_M)
    return s_BHNM.masked_fill(~visible_block(heads, rows, key_M), float("-inf"))


def normalize(s_BHNM: torch.Tensor, heads: HeadInputs) -> torch.Tensor:
    """Attention weights of whole rows of scores: softmax or ReLU over the keys. A row that sees no key is all zero.

    A score that is not a number makes its row not a number: that is shown, never hidden.
    """
    if heads.spec.normalizer == "relu":
        n_visible_BHN1 = (~s_BHNM.isneginf()).sum(-1, keepdim=True).clamp(min=1)
        return functional.relu(s_BHNM) / n_visible_BHN1
    if heads.sinks_H is not None:
        sink_BHN1 = heads.sinks_H.float()[None, :, None, None].expand(*s_BHNM.shape[:-1], 1)
        return torch.cat((s_BHNM, sink_BHN1), dim=-1).softmax(-1)[..., :-1]
    return s_BHNM.softmax(-1).masked_fill(s_BHNM.isneginf(), 0.0)


def take_keys(x_BKMD: torch.Tensor, key_M: torch.Tensor) -> torch.Tensor:
    """Keys or values at ascending indices; a view where they are contiguous."""
    first, last = int(key_M[0]), int(key_M[-1])
    return x_BKMD[:, :, first : last + 1] if last - first + 1 == len(key_M) else x_BKMD[:, :, key_M]


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
        return torch.matmul(_grouped(weights_BHNM, v_BKMD.shape[1]), v_BKMD[:, :, None]).flatten(1, 2), None
    block_BHNM = visible_block(heads, rows, key_M)
    if heads.is_biased:
        bias_BHNM = _bias_block(heads, rows, key_M).to(heads.q_BHND.dtype)
        block_BHNM = torch.where(block_BHNM, bias_BHNM, float("-inf"))
        # Exact scores do not add up to the log-sum-exp of scores whose bias was rounded.
        want_logsumexp = want_logsumexp and bias_BHNM.dtype == torch.float32
    mask = _KernelMask(block_BHNM=block_BHNM)
    q_BHND, k_BKMD = heads.q_BHND[:, :, rows], take_keys(heads.k_BKMD, key_M)
    return _fused(q_BHND, k_BKMD, v_BKMD, mask, heads.spec.scale, dropout, want_logsumexp)


def _bias_block(heads: HeadInputs, rows: slice, key_M: torch.Tensor) -> torch.Tensor:
    """What position adds to scores [B or 1, H, N, M] in float32."""
    position, query_N = heads.spec.position, _positions(heads, rows)
    if isinstance(position, DisentangledPositions):
        assert heads.distances is not None
        q_BHND = heads.q_BHND[:, :, rows].float() * heads.spec.scale
        k_BHMD = take_keys(heads.k_BKMD, key_M).float() * heads.spec.scale
        return distance_scores(position, heads.distances, q_BHND, k_BHMD, query_N, key_M)
    assert isinstance(position, AlibiPositions | BucketedPositions) and heads.bias_weights is not None
    return score_bias(position, heads.bias_weights.float(), query_N, key_M)[None]


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


def _grouped(x_BHNM: torch.Tensor, n_key_heads: int) -> torch.Tensor:
    """Query heads gathered by the key head they share: [B, K, G, ...]."""
    return x_BHNM.unflatten(1, (n_key_heads, -1))


class Attention(nn.Module):
    """output(attend(query(x), key(context), value(context))), each head on its own slice of the projections."""

    def __init__(self, spec: AttentionSpec, d_model: int, d_context: int | None = None) -> None:
        super().__init__()
        d_context = d_model if d_context is None else d_context
        self.spec = spec
        self.query = nn.Linear(d_model, spec.d_query, bias=spec.query_bias)
        self.key = nn.Linear(d_context, spec.d_key, bias=spec.key_bias)
        self.value = nn.Linear(d_context, spec.d_key, bias=spec.value_bias)
        self.output = nn.Linear(spec.d_query, d_model, bias=spec.output_bias)
        self.query_norm = self.key_norm = None
        if spec.query_key_norm is not None:
            self.query_norm = make_norm(spec.query_key_norm.norm, _norm_shape(spec.query_key_norm, spec.n_heads, spec))
            self.key_norm = make_norm(
                spec.query_key_norm.norm, _norm_shape(spec.query_key_norm, spec.n_key_heads, spec)
            )
        self.sinks = nn.Parameter(torch.zeros(spec.n_heads)) if spec.sinks else None
        self.position_bias = None
        if isinstance(spec.position, BucketedPositions) and spec.position.from_layer is None:
            self.position_bias = nn.Embedding(spec.position.n_buckets, spec.n_heads)
        self.distance_key = self.distance_query = None
        if isinstance(spec.position, DisentangledPositions) and not spec.position.shared_maps:
            if spec.position.content_to_position:
                self.distance_key = nn.Linear(d_model, spec.d_key, bias=spec.position.key_bias)
            if spec.position.position_to_content:
                self.distance_query = nn.Linear(d_model, spec.d_query)

    def forward(
        self,
        x_BNC: torch.Tensor,
        context_BMC: torch.Tensor | None = None,
        *,
        key_mask_BM: torch.Tensor | None = None,
        bias_table: torch.Tensor | None = None,
        distance_RC: torch.Tensor | None = None,
        cache: KeyValueCache | None = None,
        site: str = "",
        layer: int = 0,
        tap: Tap | None = None,
    ) -> torch.Tensor:
        """[B, N, C] -> [B, N, C]. Keys and values come from context_BMC, or from x_BNC in self-attention."""
        is_cross = context_BMC is not None
        q_BHND = self._heads(self.query(x_BNC), self.spec.n_heads, self.query_norm)
        start = 0
        if is_cross and cache is not None and cache.has(site, layer):
            k_BKMD, v_BKMD = cache.read(site, layer)
        else:
            source_BMC = x_BNC if context_BMC is None else context_BMC
            k_BKMD = self._heads(self.key(source_BMC), self.spec.n_key_heads, self.key_norm)
            v_BKMD = self._heads(self.value(source_BMC), self.spec.n_key_heads, None)
            start = 0 if cache is None or is_cross else cache.length(site, layer)
            if isinstance(self.spec.position, RotaryPositions):
                position_N = torch.arange(start, start + x_BNC.shape[1], device=x_BNC.device)
                length = start + x_BNC.shape[1]
                q_BHND = rotate(q_BHND, self.spec.position, position_N, length)
                k_BKMD = rotate(k_BKMD, self.spec.position, position_N, length)
            if cache is not None:
                k_BKMD, v_BKMD = cache.append(site, layer, k_BKMD, v_BKMD)
        heads = HeadInputs(
            spec=self.spec,
            q_BHND=q_BHND,
            k_BKMD=k_BKMD,
            query_start=start,
            key_mask_BM=key_mask_BM,
            bias_weights=self._bias_weights(bias_table, x_BNC.device),
            distances=self._distances(distance_RC),
            sinks_H=self.sinks,
        )
        out_BHND = self._attend(heads, v_BKMD, site, layer, tap)
        return self.output(out_BHND.transpose(1, 2).flatten(2))

    def _attend(self, heads: HeadInputs, v_BKMD: torch.Tensor, site: str, layer: int, tap: Tap | None) -> torch.Tensor:
        """Weighted values [B, H, N, D], with everything a tap may want to see or change on the way."""
        dropout = self.spec.dropout if self.training else 0.0
        if tap is None:
            return attend(heads, v_BKMD, dropout=dropout)[0]
        stack, kind = site.split(".")
        prefix = f"{stack}.{layer}." + ("cross_" if kind == "cross" else "")
        q_BHND = tap.activation(f"{prefix}query", heads.q_BHND)
        k_BKMD = tap.activation(f"{prefix}key", heads.k_BKMD)
        v_BKMD = tap.activation(f"{prefix}value", v_BKMD)
        heads = replace(heads, q_BHND=q_BHND, k_BKMD=k_BKMD)
        out_BHND, logsumexp_BHN = attend(heads, v_BKMD, dropout=dropout, want_logsumexp=tap.wants_logsumexp)
        tap.attention(site, layer, replace(heads, logsumexp_BHN=logsumexp_BHN).kept())
        for head, pattern_BNM in tap.pattern_edits(site, layer, heads).items():
            v_BMD = v_BKMD[:, head * v_BKMD.shape[1] // self.spec.n_heads]
            at_head = torch.tensor([head], device=out_BHND.device)
            out_BHND = out_BHND.index_copy(1, at_head, (pattern_BNM.to(v_BMD.dtype) @ v_BMD)[:, None])
        return tap.activation(f"{prefix}head_output", out_BHND)

    def _heads(self, x_BNE: torch.Tensor, n_heads: int, norm: nn.Module | None) -> torch.Tensor:
        """Split a projection into heads [B, H, N, D], clipped and normalised as the spec says."""
        if self.spec.clip is not None:
            x_BNE = x_BNE.clamp(-self.spec.clip, self.spec.clip)
        if norm is not None and self.spec.query_key_norm is not None and self.spec.query_key_norm.over == "width":
            return norm(x_BNE).unflatten(-1, (n_heads, -1)).transpose(1, 2)
        x_BNHD = x_BNE.unflatten(-1, (n_heads, -1))
        return (x_BNHD if norm is None else norm(x_BNHD)).transpose(1, 2)

    def _bias_weights(self, table: torch.Tensor | None, device: torch.device) -> torch.Tensor | None:
        if isinstance(self.spec.position, AlibiPositions):
            return alibi_slopes(self.spec.position, self.spec.n_heads).to(device)
        return self.position_bias.weight if self.position_bias is not None else table

    def _distances(self, distance_RC: torch.Tensor | None) -> Distances | None:
        """What the stack's vectors of distances are to each head."""
        position = self.spec.position
        if not isinstance(position, DisentangledPositions):
            return None
        assert distance_RC is not None
        key = self.key if position.shared_maps else self.distance_key
        query = self.query if position.shared_maps else self.distance_query

        def by_head(x_RE: torch.Tensor) -> torch.Tensor:
            return x_RE.unflatten(-1, (self.spec.n_heads, -1)).transpose(0, 1)

        return Distances(
            key_HRD=by_head(key(distance_RC)) if key is not None and position.content_to_position else None,
            query_HRD=by_head(query(distance_RC)) if query is not None and position.position_to_content else None,
        )


def _norm_shape(norm: QueryKeyNorm, n_heads: int, spec: AttentionSpec) -> int | tuple[int, ...]:
    shapes = {"head": spec.head_size, "heads": (n_heads, spec.head_size), "width": n_heads * spec.head_size}
    return shapes[norm.over]
