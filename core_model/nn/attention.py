"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2): the module.

Shape letters: B batch, N queries, M keys, H heads, K key heads, D head size, C model width, R rows of a table.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from core_model.config import (
    AlibiPositions,
    AttentionSpec,
    DisentangledPositions,
    QueryKeyNorm,
    RotaryPositions,
    TablePositions,
)
from core_model.nn.attend import attend
from core_model.nn.disentangled import Distances
from core_model.nn.forward_pass import ALONE, Pass
from core_model.nn.linear import Linear, mapped
from core_model.nn.norms import make_norm
from core_model.nn.positions import alibi_slopes, rotate
from core_model.nn.scores import HeadInputs
from core_model.nn.tap import Tap
from core_model.sites import attention_activation


class Attention(nn.Module):
    """output(attend(query(x), key(context), value(context))), each head on its own slice of the projections."""

    def __init__(self, spec: AttentionSpec, d_model: int, d_context: int | None = None) -> None:
        super().__init__()
        d_context = d_model if d_context is None else d_context
        self.spec = spec
        self.query = Linear(d_model, spec.d_query, bias=spec.query_bias)
        self.key = Linear(d_context, spec.d_key, bias=spec.key_bias)
        self.value = Linear(d_context, spec.d_key, bias=spec.value_bias)
        self.output = Linear(spec.d_query, d_model, bias=spec.output_bias)
        self.query_norm = self.key_norm = None
        if spec.query_key_norm is not None:
            self.query_norm = make_norm(spec.query_key_norm.norm, _norm_shape(spec.query_key_norm, spec.n_heads, spec))
            self.key_norm = make_norm(
                spec.query_key_norm.norm, _norm_shape(spec.query_key_norm, spec.n_key_heads, spec)
            )
        self.sinks = nn.Parameter(torch.zeros(spec.n_heads)) if spec.sinks else None
        self.position_bias = None
        if isinstance(spec.position, TablePositions) and spec.position.from_layer is None:
            self.position_bias = nn.Embedding(spec.position.n_buckets, spec.n_heads)
        self.distance_key = self.distance_query = None
        if isinstance(spec.position, DisentangledPositions) and not spec.position.shared_maps:
            if spec.position.content_to_position:
                self.distance_key = Linear(d_model, spec.d_key, bias=spec.position.key_bias)
            if spec.position.position_to_content:
                self.distance_query = Linear(d_model, spec.d_query)

    def forward(
        self,
        x_BNC: torch.Tensor,
        context_BMC: torch.Tensor | None = None,
        *,
        key_mask_BM: torch.Tensor | None = None,
        bias_table: torch.Tensor | None = None,
        shared: Pass = ALONE,
        site: str = "",
        layer: int = 0,
    ) -> torch.Tensor:
        """[B, N, C] -> [B, N, C]. Keys and values come from context_BMC, or from x_BNC in self-attention."""
        is_cross, cache, tap = context_BMC is not None, shared.cache, shared.tap
        q_BHND = self._heads(mapped(self.query, x_BNC, tap), self.spec.n_heads, self.query_norm)
        start = 0
        if is_cross and cache is not None and cache.has(site, layer):
            k_BKMD, v_BKMD = cache.read(site, layer)
        else:
            source_BMC = x_BNC if context_BMC is None else context_BMC
            k_BKMD = self._heads(mapped(self.key, source_BMC, tap), self.spec.n_key_heads, self.key_norm)
            v_BKMD = self._heads(mapped(self.value, source_BMC, tap), self.spec.n_key_heads, None)
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
            distances=self._distances(shared.distance_RC),
            sinks_H=self.sinks,
        )
        out_BHND = self._attend(heads, v_BKMD, site, layer, tap)
        return mapped(self.output, out_BHND.transpose(1, 2).flatten(2), tap)

    def _attend(self, heads: HeadInputs, v_BKMD: torch.Tensor, site: str, layer: int, tap: Tap | None) -> torch.Tensor:
        """Weighted values [B, H, N, D], with everything a tap may want to see or change on the way."""
        dropout = self.spec.dropout if self.training else 0.0
        if tap is None:
            return attend(heads, v_BKMD, dropout=dropout)[0]
        q_BHND = tap.activation(attention_activation(site, layer, "query"), heads.q_BHND)
        k_BKMD = tap.activation(attention_activation(site, layer, "key"), heads.k_BKMD)
        v_BKMD = tap.activation(attention_activation(site, layer, "value"), v_BKMD)
        heads = replace(heads, q_BHND=q_BHND, k_BKMD=k_BKMD)
        out_BHND, logsumexp_BHN = attend(
            heads, v_BKMD, dropout=dropout, want_logsumexp=tap.wants_logsumexp, between=tap.attending
        )
        heads = replace(heads, logsumexp_BHN=logsumexp_BHN, replaced=tap.replaced_heads(site, layer, heads))
        for head, own in heads.replaced.items():
            key_head = head * self.spec.n_key_heads // self.spec.n_heads
            v_B1MD = v_BKMD[:, key_head : key_head + 1]
            own_B1ND, _ = attend(own, v_B1MD, dropout=dropout, between=lambda _: tap.attending(1.0))
            out_BHND = out_BHND.index_copy(1, torch.tensor([head], device=out_BHND.device), own_B1ND)
        tap.attention(site, layer, heads.kept())
        return tap.activation(attention_activation(site, layer, "head_output"), out_BHND)

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
