"""Attention by its definition, in float64 and without cleverness: what every faster way has to equal.

It reads the config records and the weights of the modules under test, and nothing else of them.

Shape letters: B batch, N queries, M keys, H heads, K key heads, D head size, C model width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from transformers.models.beit.modeling_beit import BeitRelativePositionBias
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position
from transformers.models.t5.modeling_t5 import T5Attention

from core_model.config import (
    AlibiPositions,
    AttentionSpec,
    BucketedPositions,
    DisentangledPositions,
    GridPositions,
    MaskSpec,
    NormSpec,
    RotaryPositions,
)


@dataclass(frozen=True, kw_only=True)
class Dense:
    """Everything one attention computes, whole. `logsumexp_BHN` counts the sink and is -inf where no key is seen."""

    scores_BHNM: torch.Tensor
    visible_BNM: torch.Tensor
    weights_BHNM: torch.Tensor
    logsumexp_BHN: torch.Tensor
    output_BNC: torch.Tensor


def may_see(mask: MaskSpec, query: int, key: int) -> bool:
    """The sentence of MaskSpec's docstring, for one query and one key."""
    if key < mask.n_prefix:
        return True
    if mask.causal and key > query:
        return False
    if mask.window is None or query < mask.n_global or key < mask.n_global:
        return True
    return query - key < mask.window if mask.causal else abs(query - key) <= mask.window


def visible_matrix(mask: MaskSpec, queries: range, keys: range) -> torch.Tensor:
    """True [N, M] where the query may see the key."""
    return torch.tensor([[may_see(mask, query, key) for key in keys] for query in queries])


def dense_attention(
    attention: nn.Module,
    x_BNC: torch.Tensor,
    context_BMC: torch.Tensor | None = None,
    *,
    first_query: int = 0,
    key_mask_BM: torch.Tensor | None = None,
    distance_RC: torch.Tensor | None = None,
) -> Dense:
    """The attention of the tokens from `first_query` on, over all tokens of x_BNC (or of context_BMC).

    `distance_RC` are the stack's vectors of distances, where attention is disentangled.
    """
    spec = attention.spec
    assert isinstance(spec, AttentionSpec)
    weights = {name: tensor.double() for name, tensor in attention.state_dict().items()}
    source_BMC = x_BNC if context_BMC is None else context_BMC
    q_BHND = _heads(spec, weights, "query", x_BNC.double(), spec.n_heads)
    k_BHMD = _heads(spec, weights, "key", source_BMC.double(), spec.n_key_heads)
    v_BHMD = _heads(spec, weights, "value", source_BMC.double(), spec.n_key_heads)
    if isinstance(spec.position, RotaryPositions):
        q_BHND, k_BHMD = rotated(q_BHND, spec.position), rotated(k_BHMD, spec.position)
    q_BHND = q_BHND[:, :, first_query:]
    k_BHMD, v_BHMD = (t.repeat_interleave(spec.n_heads // spec.n_key_heads, dim=1) for t in (k_BHMD, v_BHMD))

    s_BHNM = torch.einsum("bhnd,bhmd->bhnm", q_BHND, k_BHMD) * spec.scale
    if spec.soft_cap is not None:
        s_BHNM = spec.soft_cap * torch.tanh(s_BHNM / spec.soft_cap)
    queries, keys = range(first_query, x_BNC.shape[1]), range(source_BMC.shape[1])
    if distance_RC is None:
        s_BHNM = s_BHNM + _bias(spec, weights, queries, keys)
    else:
        s_BHNM = s_BHNM + spec.scale * _met(spec, weights, q_BHND, k_BHMD, distance_RC.double(), queries)
    visible_BNM = visible_matrix(spec.mask, queries, keys).expand(len(x_BNC), -1, -1)
    if key_mask_BM is not None:
        visible_BNM = visible_BNM & key_mask_BM[:, None]
    logsumexp_BHN, w_BHNM = _normalized(spec, weights, s_BHNM, visible_BNM[:, None])
    out_BNE = torch.einsum("bhnm,bhmd->bnhd", w_BHNM, v_BHMD).flatten(2)
    return Dense(
        scores_BHNM=s_BHNM,
        visible_BNM=visible_BNM,
        weights_BHNM=w_BHNM,
        logsumexp_BHN=logsumexp_BHN,
        output_BNC=_linear(weights, "output", out_BNE),
    )


def dense_norm(spec: NormSpec, x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None) -> torch.Tensor:
    """Ba et al. 2016, eq. 4; Zhang and Sennrich 2019, eq. 4."""
    if spec.kind == "layer":
        x = x - x.mean(-1, keepdim=True)
    x = x / torch.sqrt((x**2).mean(-1, keepdim=True) + spec.eps)
    if weight is not None:
        x = x * (weight + 1 if spec.unit_offset else weight)
    return x if bias is None else x + bias


def rotated(x_BHND: torch.Tensor, spec: RotaryPositions) -> torch.Tensor:
    """Each pair of dimensions as a complex number, turned by exp(i * position * base^(-2 pair / R))."""
    x_BHND = x_BHND.clone()
    for pair in range(spec.n_rotated // 2):
        real, imaginary = (pair, pair + spec.n_rotated // 2) if spec.layout == "halves" else (2 * pair, 2 * pair + 1)
        angle_N = torch.arange(x_BHND.shape[2]) * spec.base ** (-2 * pair / spec.n_rotated)
        z_BHN = torch.complex(x_BHND[..., real], x_BHND[..., imaginary])
        z_BHN = z_BHN * torch.exp(1j * angle_N.double())
        x_BHND[..., real], x_BHND[..., imaginary] = z_BHN.real, z_BHN.imag
    return x_BHND


def paper_slopes(n_heads: int) -> list[float]:
    """Press et al. 2022, section 3, and their code for head counts that are no power of two."""
    if math.log2(n_heads).is_integer():
        return [2 ** (-8 * head / n_heads) for head in range(1, n_heads + 1)]
    closest = 2 ** math.floor(math.log2(n_heads))
    return paper_slopes(closest) + paper_slopes(2 * closest)[0::2][: n_heads - closest]


def _heads(
    spec: AttentionSpec, weights: dict[str, torch.Tensor], name: str, x_BNC: torch.Tensor, n_heads: int
) -> torch.Tensor:
    x_BNE = _linear(weights, name, x_BNC)
    if spec.clip is not None:
        x_BNE = x_BNE.clamp(-spec.clip, spec.clip)
    norm = None if name == "value" else spec.query_key_norm
    gain, bias = weights.get(f"{name}_norm.weight"), weights.get(f"{name}_norm.bias")
    if norm is not None and norm.over == "width":
        x_BNE = dense_norm(norm.norm, x_BNE, gain, bias)
    x_BNHD = x_BNE.reshape(*x_BNE.shape[:2], n_heads, spec.head_size)
    if norm is not None and norm.over != "width":
        x_BNHD = dense_norm(norm.norm, x_BNHD, gain, bias)
    return x_BNHD.transpose(1, 2)


def _linear(weights: dict[str, torch.Tensor], name: str, x: torch.Tensor) -> torch.Tensor:
    y = x @ weights[f"{name}.weight"].T
    return y + weights[f"{name}.bias"] if f"{name}.bias" in weights else y


def _bias(spec: AttentionSpec, weights: dict[str, torch.Tensor], queries: range, keys: range) -> torch.Tensor:
    distance_NM = torch.tensor([[key - query for key in keys] for query in queries])
    if isinstance(spec.position, AlibiPositions):
        assert spec.position.max_bias == 8
        slope_H = torch.tensor(paper_slopes(spec.n_heads), dtype=torch.float64) * spec.position.scale
        return -slope_H[:, None, None] * distance_NM.abs()
    if isinstance(spec.position, BucketedPositions):
        bucket_NM = T5Attention._relative_position_bucket(
            distance_NM,
            bidirectional=spec.position.bidirectional,
            num_buckets=spec.position.n_buckets,
            max_distance=spec.position.max_distance,
        )
        return weights["position_bias.weight"][bucket_NM].permute(2, 0, 1)
    if isinstance(spec.position, GridPositions):
        bucket_NM = BeitRelativePositionBias.generate_relative_position_index(spec.position.grid)
        return weights["position_bias.weight"][bucket_NM][queries.start : queries.stop, : len(keys)].permute(2, 0, 1)
    return torch.zeros(1, dtype=torch.float64)


def _met(
    spec: AttentionSpec,
    weights: dict[str, torch.Tensor],
    q_BHND: torch.Tensor,
    k_BHMD: torch.Tensor,
    distance_RC: torch.Tensor,
    queries: range,
) -> torch.Tensor:
    """He et al. 2021, eq. 4: query i with the key of the distance from j, and the query of that distance with key j."""
    position = spec.position
    assert isinstance(position, DisentangledPositions)
    own = "" if position.shared_maps else "distance_"
    key_RHD, query_RHD = (
        _linear(weights, f"{own}{part}", distance_RC).unflatten(-1, (spec.n_heads, -1))
        if f"{own}{part}.weight" in weights
        else torch.zeros(len(distance_RC), spec.n_heads, spec.head_size, dtype=torch.float64)
        for part in ("key", "query")
    )
    met_BHNM = torch.zeros(*q_BHND.shape[:3], k_BHMD.shape[2], dtype=torch.float64)
    for row, query in enumerate(queries):
        for key in range(k_BHMD.shape[2]):
            distance = torch.tensor([query - key])
            if position.max_distance is not None:
                distance = make_log_bucket_position(distance, position.span, position.max_distance)
            place = min(max(int(distance) + position.span, 0), 2 * position.span - 1)
            if position.content_to_position:
                met_BHNM[:, :, row, key] += (q_BHND[:, :, row] * key_RHD[place]).sum(-1)
            if position.position_to_content:
                met_BHNM[:, :, row, key] += (k_BHMD[:, :, key] * query_RHD[place]).sum(-1)
    return met_BHNM


def _normalized(
    spec: AttentionSpec, weights: dict[str, torch.Tensor], s_BHNM: torch.Tensor, visible_B1NM: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-sum-exp of each row, and the weights: 0 for a key that is not seen."""
    if spec.normalizer == "relu":
        n_visible_B1N1 = visible_B1NM.sum(-1, keepdim=True).clamp(min=1)
        return torch.zeros(s_BHNM.shape[:-1]), torch.relu(s_BHNM) * visible_B1NM / n_visible_B1N1
    e_BHNM = torch.exp(s_BHNM) * visible_B1NM
    total_BHN = e_BHNM.sum(-1)
    if spec.sinks:
        total_BHN = total_BHN + torch.exp(weights["sinks"])[:, None]
    share_BHNM = e_BHNM / total_BHN.where(total_BHN > 0, 1.0)[..., None]
    return total_BHN.log(), share_BHNM
