"""What query i gives key j, and how a row of that becomes weights (Vaswani et al. 2017, section 3.2): pure functions.

`scores` is the one definition of what comes before the normaliser: scale, soft-cap, position bias, mask. The model's
own forward pass, `core_model.trace.scores` and everything drawn on a screen use it, or one of two quicker ways that
tests hold against it: a fused kernel, and `core_model.trace.head_group`.

Shape letters: B batch, N queries, M keys, H heads, K key heads, G query heads a key head, D head size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import torch
from torch.nn import functional

from core_model.config import AlibiPositions, AttentionSpec, DisentangledPositions, TablePositions
from core_model.nn import masks
from core_model.nn.disentangled import Distances, distance_scores
from core_model.nn.positions import score_bias
from core_model.nn.product import without_autocast

Keys: TypeAlias = Sequence[range]
"""Ascending ranges of keys: told as numbers, for to ask a GPU for them is to wait for it."""
_NEVER_CHOSEN = -1e9
"""The score of a key that may be seen and is given nothing: its weight is exactly 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadInputs:
    """What one attention computes its scores from: references to the tensors it made anyway, no copies.

    Queries stand at positions query_start, query_start + 1, ...; keys at 0, 1, ... `bias_weights` are ALiBi's slopes
    [H] or a table of biases [buckets, H], `distances` what DeBERTa's content meets; `key_mask_BM` is False at padding;
    `logsumexp_BHN` is there where the kernel gave it. `replaced` are heads whose attention an edit changed, by number,
    each with inputs of its own, as `head` gives them; with `chosen_key_N` query i looks at that one key alone.
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
    chosen_key_N: torch.Tensor | None = None
    replaced: Mapping[int, HeadInputs] = field(default_factory=dict)

    @property
    def is_biased(self) -> bool:
        """Whether something is added to the products of queries and keys."""
        return any(x is not None for x in (self.bias_weights, self.distances, self.chosen_key_N))

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Those whose size grows with the length, or with the table of distances."""
        own = (self.q_BHND, self.k_BKMD, self.logsumexp_BHN, self.chosen_key_N)
        distances = () if self.distances is None else self.distances.tensors
        replaced = (x for heads in self.replaced.values() for x in heads.tensors)
        return (*(x for x in own if x is not None), *distances, *replaced)

    @property
    def n_queries(self) -> int:
        """Number of rows."""
        return self.q_BHND.shape[2]

    @property
    def n_keys(self) -> int:
        """Number of columns."""
        return self.k_BKMD.shape[2]

    def positions(self, rows: slice) -> range:
        """The positions of the queries of a slice, which may step."""
        indices = range(*rows.indices(self.n_queries))
        return range(indices.start + self.query_start, indices.stop + self.query_start, indices.step)

    def head(self, head: int) -> HeadInputs:
        """The same for one head alone, as the model uses it: every H and K axis has size 1."""
        return self.replaced[head] if head in self.replaced else self.of_heads(slice(head, head + 1))

    def of_heads(self, heads: slice) -> HeadInputs:
        """The same for some heads as they were computed: those of whole key heads, or some of one."""
        n_sharing = self.q_BHND.shape[1] // self.k_BKMD.shape[1]
        shared = slice(heads.start // n_sharing, -(-heads.stop // n_sharing))
        return replace(
            self,
            q_BHND=self.q_BHND[:, heads],
            k_BKMD=self.k_BKMD[:, shared],
            bias_weights=None if self.bias_weights is None else self.bias_weights[..., heads],
            distances=None if self.distances is None else self.distances.of_heads(heads),
            sinks_H=None if self.sinks_H is None else self.sinks_H[heads],
            logsumexp_BHN=None if self.logsumexp_BHN is None else self.logsumexp_BHN[:, heads],
            replaced={},
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
            replaced={head: own.kept() for head, own in self.replaced.items()},
        )


def visible_block(heads: HeadInputs, rows: slice, keys: Keys) -> torch.Tensor:
    """True [B or 1, 1, N, M] where a query of `rows` may see a key."""
    query_N, key_M = (_indices(heads, ranges) for ranges in ([heads.positions(rows)], keys))
    seen_BHNM = masks.visible(heads.spec.mask, query_N, key_M)[None, None]
    if heads.key_mask_BM is not None:
        seen_BHNM = seen_BHNM & heads.key_mask_BM[:, key_M][:, None, None, :]
    return seen_BHNM


def _indices(heads: HeadInputs, ranges: Sequence[range]) -> torch.Tensor:
    """All of the ranges, one after another, on the device of the heads."""
    device = heads.q_BHND.device
    each = [torch.arange(some.start, some.stop, some.step, device=device) for some in ranges]
    return each[0] if len(each) == 1 else torch.cat(each)


def scores(heads: HeadInputs, rows: slice, keys: Keys) -> torch.Tensor:
    """Scores [B, H, N, M] in float32 of the queries in `rows` for the keys; masked ones are -inf.

    soft_cap(q . k * scale) + position bias, whatever the dtype of the model.
    """
    spec = heads.spec
    q_BKGND = grouped(heads.q_BHND[:, :, rows].float() * spec.scale, heads.k_BKMD.shape[1])
    k_BKMD = take_keys(heads.k_BKMD, keys).float()
    with without_autocast(q_BKGND.device):
        s_BHNM = torch.matmul(q_BKGND, k_BKMD[:, :, None].transpose(-1, -2)).flatten(1, 2)
    if spec.soft_cap is not None:
        s_BHNM = _capped(s_BHNM, spec.soft_cap)
    if heads.is_biased:
        s_BHNM = s_BHNM + bias_block(heads, rows, keys)
    if heads.key_mask_BM is None and _sees_all(heads, rows, keys):
        return s_BHNM
    return s_BHNM.masked_fill_(~visible_block(heads, rows, keys), float("-inf"))


def _capped(s_BHNM: torch.Tensor, cap: float) -> torch.Tensor:
    """Scores drawn to within the cap; in their place where no gradient needs them."""
    if s_BHNM.requires_grad:
        return torch.tanh(s_BHNM / cap) * cap
    return s_BHNM.div_(cap).tanh_().mul_(cap)


def _sees_all(heads: HeadInputs, rows: slice, keys: Keys) -> bool:
    """Whether every query of the slice may see every key between the first and the last."""
    queries = heads.positions(rows)
    between = range(queries[0], queries[-1] + 1), range(keys[0][0], keys[-1][-1] + 1)
    return masks.coverage(heads.spec.mask, *between) == "all"


def normalize(s_BHNM: torch.Tensor, heads: HeadInputs) -> torch.Tensor:
    """Attention weights of whole rows of scores: softmax or ReLU over the keys. A row that sees no key is all zero.

    A score that is not a number makes its row not a number: that is shown, never hidden.
    """
    hidden_BHNM = s_BHNM.isneginf()
    if heads.spec.normalizer == "relu":
        n_visible_BHN1 = (~hidden_BHNM).sum(-1, keepdim=True).clamp(min=1)
        return functional.relu(s_BHNM) / n_visible_BHN1
    if heads.sinks_H is not None:
        sink_BHN1 = heads.sinks_H.float()[None, :, None, None].expand(*s_BHNM.shape[:-1], 1)
        weights_BHNM = torch.cat((s_BHNM, sink_BHN1), dim=-1).softmax(-1)[..., :-1]
    else:
        weights_BHNM = s_BHNM.softmax(-1)
    if weights_BHNM.requires_grad:
        return weights_BHNM.masked_fill(hidden_BHNM, 0.0)
    return weights_BHNM.masked_fill_(hidden_BHNM, 0.0)


def take_keys(x_BKMD: torch.Tensor, keys: Keys) -> torch.Tensor:
    """Keys or values in their ranges; a view where these are one."""
    taken = [x_BKMD[:, :, some.start : some.stop : some.step] for some in keys]
    return taken[0] if len(taken) == 1 else torch.cat(taken, dim=2)


def bias_block(heads: HeadInputs, rows: slice, keys: Keys, *, keys_first: bool = False) -> torch.Tensor:
    """What position, or a key that was chosen, adds to scores [B or 1, H, N, M] in float32; or [B or 1, H, M, N]."""
    position, queries = heads.spec.position, heads.positions(rows)
    if heads.chosen_key_N is not None:
        is_other_NM = _indices(heads, keys)[None, :] != heads.chosen_key_N[rows, None]
        bias_BHNM = (is_other_NM * _NEVER_CHOSEN)[None, None]
    elif isinstance(position, DisentangledPositions):
        assert heads.distances is not None
        q_BHND = heads.q_BHND[:, :, rows].float() * heads.spec.scale
        k_BHMD = take_keys(heads.k_BKMD, keys).float() * heads.spec.scale
        query_N, key_M = _indices(heads, [queries]), _indices(heads, keys)
        bias_BHNM = distance_scores(position, heads.distances, q_BHND, k_BHMD, query_N, key_M)
    else:
        assert isinstance(position, AlibiPositions | TablePositions) and heads.bias_weights is not None
        return score_bias(position, heads.bias_weights.float(), queries, keys, keys_first=keys_first)[None]
    return bias_BHNM.mT if keys_first else bias_BHNM


def grouped(x_BHNM: torch.Tensor, n_key_heads: int) -> torch.Tensor:
    """Query heads gathered by the key head they share: [B, K, G, ...]."""
    return x_BHNM.unflatten(1, (n_key_heads, -1))
