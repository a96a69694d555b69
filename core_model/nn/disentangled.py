"""Scores between content and distance (DeBERTa: He et al. 2021, section 3.1), for any block of rows and columns.

Query i gives key j, beside their product, the product of query i with the key of their distance, and that of key j
with the query of their distance; how far apart two tokens are is a vector, not a number.

Shape letters: B batch, H heads, N queries, M keys, D head size, C model width, R rows of the table of distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from core_model.config import DisentangledPositions
from core_model.nn.product import without_autocast


@dataclass(frozen=True, kw_only=True, eq=False)
class Distances:
    """Keys and queries of every row of the table of distances, for each head; None where a term is left out."""

    key_HRD: torch.Tensor | None = None
    query_HRD: torch.Tensor | None = None

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Those there are."""
        return tuple(x for x in (self.key_HRD, self.query_HRD) if x is not None)

    def of_heads(self, heads: slice) -> Distances:
        """The same for some heads alone."""
        return Distances(
            key_HRD=None if self.key_HRD is None else self.key_HRD[heads],
            query_HRD=None if self.query_HRD is None else self.query_HRD[heads],
        )

    def detached(self) -> Distances:
        """The same outside of autograd."""
        return Distances(
            key_HRD=None if self.key_HRD is None else self.key_HRD.detach(),
            query_HRD=None if self.query_HRD is None else self.query_HRD.detach(),
        )


def distance_row(spec: DisentangledPositions, distance: torch.Tensor) -> torch.Tensor:
    """The row of the table for a query position minus a key position.

    Without max_distance, row span + distance. With it, distances of more than half the span are put on a logarithmic
    scale, rounded away from 0, so that max_distance - 1 falls on span - 1 (as in DeBERTa-v2's code).
    """
    if spec.max_distance is not None:
        n_exact = spec.span // 2
        farthest = torch.tensor((spec.max_distance - 1) / n_exact, dtype=torch.float32, device=distance.device)
        ratio = torch.log(distance.abs().clamp(min=n_exact) / n_exact) / torch.log(farthest)
        far = (n_exact + torch.ceil(ratio * (n_exact - 1)).long()) * distance.sign()
        distance = torch.where(distance.abs() <= n_exact, distance, far)
    return (distance + spec.span).clamp(0, 2 * spec.span - 1)


def distance_scores(
    spec: DisentangledPositions,
    distances: Distances,
    q_BHND: torch.Tensor,
    k_BHMD: torch.Tensor,
    query_N: torch.Tensor,
    key_M: torch.Tensor,
) -> torch.Tensor:
    """What distance adds to the scores [B, H, N, M] of scaled queries at positions query_N and scaled keys at key_M."""
    row_NM = distance_row(spec, query_N[:, None] - key_M[None, :])
    shape = (*q_BHND.shape[:2], len(query_N), len(key_M))
    total_BHNM = torch.zeros(shape, dtype=torch.float32, device=q_BHND.device)
    if distances.key_HRD is not None:
        with without_autocast(q_BHND.device):
            met_BHNR = q_BHND @ distances.key_HRD.float().mT
        total_BHNM = total_BHNM + met_BHNR.gather(-1, row_NM.expand(shape))
    if distances.query_HRD is not None:
        with without_autocast(q_BHND.device):
            met_BHRM = distances.query_HRD.float() @ k_BHMD.mT
        total_BHNM = total_BHNM + met_BHRM.gather(-2, row_NM.expand(shape))
    return total_BHNM
