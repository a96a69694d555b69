"""What each head does, in a few numbers a head.

With weights a_ij of query i for key j, and means over the queries i that see any key and have the one in question:

    entropy          -sum_j p_ij ln p_ij, in nat (Clark et al. 2019, section 3.3)
    effective span   e^entropy: the number of keys a uniform row of this entropy would have
    distance         sum_j p_ij |i - j|, in tokens (Vig and Belinkov 2019, who divide by the sum of the weights)
    first token      a_i0, the sink (Xiao et al. 2023)
    diagonal         a_ii
    previous token   a_i,i-1, i >= 1 (Clark et al. 2019, section 3.1)
    same token       sum_j a_ij [id_j = id_i, j != i]
    special tokens   sum_j a_ij [j is special] (Clark et al. 2019, section 3.2)

p_ij = a_ij / sum_j a_ij is the row divided by its sum, which is 1 but for learned sinks and ReLU; rows whose sum is 0
are left out of these means.

Shape letters: L layers, H heads, N rows of a block, M keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from core_model.analysis.blocks import row_blocks
from core_model.cancel import CancelToken, Progress
from core_model.errors import TraceError
from core_model.results import HeadStatistics, read_only
from core_model.trace.scores import HeadScores, row_entropy
from core_model.trace.trace import Trace

_NAMES = ("entropy", "distance", "first_token", "diagonal", "previous_token", "same_token", "special_tokens")


def head_statistics(
    trace: Trace,
    site: str,
    *,
    ids: Sequence[int] | None = None,
    special: Sequence[bool] | None = None,
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> HeadStatistics:
    """The numbers of every head of a site, [L, H] each, L as `trace.layers`. NaN where one has no meaning.

    `ids` of the tokens give same_token; `special` marks control tokens. Distance, diagonal, previous and same token
    need queries and keys to be the same tokens: in cross-attention they are NaN. Raises TraceError where `ids` or
    `special` are not one of each key.
    """
    n_layers, n_heads, _, n_keys = trace.shape(site)
    is_self = site.endswith("self")
    for name, given in (("ids", ids), ("special", special)):
        if given is not None and len(given) != n_keys:
            raise TraceError(f"{name} has {len(given)} entries: {site} has {n_keys} keys, and each needs one")
    id_M = None if ids is None or not is_self else torch.tensor(list(ids))
    special_M = None if special is None else torch.tensor(list(special))
    table = torch.full((len(_NAMES), n_layers, n_heads), float("nan"), dtype=torch.float32)
    for row, layer in enumerate(trace.layers(site)):
        for head in range(n_heads):
            table[:, row, head] = _one_head(trace.head(site, layer, head), is_self, id_M, special_M, cancel)
            if progress is not None:
                progress((row * n_heads + head + 1) / (n_layers * n_heads))
    return HeadStatistics(site=site, **{name: read_only(table[i].numpy()) for i, name in enumerate(_NAMES)})


def _one_head(
    head: HeadScores,
    is_self: bool,
    id_M: torch.Tensor | None,
    special_M: torch.Tensor | None,
    cancel: CancelToken | None,
) -> torch.Tensor:
    sum_N, entr_N, path_N = of_rows = torch.zeros(3, head.n_queries, dtype=torch.float64)
    totals = torch.zeros(len(_NAMES) - 2, dtype=torch.float64)
    for rows, keys, weights_NM in row_blocks(head, cancel):
        block_3N, block = _block_sums(rows, keys, weights_NM.cpu(), id_M, special_M)
        of_rows[:, rows] += block_3N
        totals += block
    has_weight_N = sum_N != 0  # so is NaN: what is no number is not left out
    means = [of_N[has_weight_N].mean() for of_N in (row_entropy(sum_N, entr_N), path_N / sum_N)]
    sees_any_N = head.sees_any().cpu()
    n, n_later = int(sees_any_N.sum()), int(sees_any_N[1:].sum())
    counts = torch.tensor([n, n, n_later, n, n], dtype=torch.float64)
    has_meaning = [True, is_self, True, is_self, is_self, id_M is not None, special_M is not None]
    numbers = torch.cat((torch.stack(means), totals / counts))
    return torch.where(torch.tensor(has_meaning), numbers, float("nan")).float()


def _block_sums(
    rows: slice, keys: slice, weights_NM: torch.Tensor, id_M: torch.Tensor | None, special_M: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Over the keys of each row [3, N]: w, -w ln w and w |i - j|. Over all of the block: the other _NAMES in order."""
    query_N, key_M = torch.arange(rows.start, rows.stop), torch.arange(keys.start, keys.stop)
    distance_NM = (query_N[:, None] - key_M).abs().float()
    of_rows = [part_NM.sum(1) for part_NM in (weights_NM, torch.special.entr(weights_NM), weights_NM * distance_NM)]
    sums = [
        weights_NM[:, key_M == 0].sum(),
        weights_NM.diagonal(rows.start - keys.start).sum(),
        weights_NM.diagonal(rows.start - keys.start - 1).sum(),
        torch.zeros((), dtype=torch.float32),
        torch.zeros((), dtype=torch.float32),
    ]
    if id_M is not None:
        is_same_NM = (id_M[rows][:, None] == id_M[keys]) & (distance_NM > 0)
        sums[3] = weights_NM[is_same_NM].sum()
    if special_M is not None:
        sums[4] = weights_NM[:, special_M[keys]].sum()
    return torch.stack(of_rows).double(), torch.stack(sums).double()
