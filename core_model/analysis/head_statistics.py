"""What each head does, in a few numbers a head.

With weights a_ij of query i for key j, and means over the queries i that see any key and have the one in question:

    entropy          -sum_j a_ij ln a_ij, in nat (Clark et al. 2019, section 3.3); of softmax alone, for what ReLU
                     gives is no distribution
    effective span   e^entropy: the number of keys a uniform row of this entropy would have
    distance         sum_j a_ij |i - j|, in tokens (Vig and Belinkov 2019)
    first token      a_i0, the sink (Xiao et al. 2023)
    diagonal         a_ii
    previous token   a_i,i-1, i >= 1 (Clark et al. 2019, section 3.1)
    same token       sum_j a_ij [id_j = id_i, j != i]
    special tokens   sum_j a_ij [j is special] (Clark et al. 2019, section 3.2)

Shape letters: L layers, H heads, N rows of a block, M keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from core_model.analysis.blocks import row_blocks
from core_model.cancel import CancelToken, Progress
from core_model.errors import TraceError
from core_model.results import HeadStatistics, read_only
from core_model.trace.scores import HeadScores
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
    totals = torch.zeros(len(_NAMES), dtype=torch.float64)
    for rows, keys, weights_NM in row_blocks(head, cancel):
        totals += _block_sums(rows, keys, weights_NM.cpu(), id_M, special_M)
    sees_any_N = head.sees_any().cpu()
    n, n_later = int(sees_any_N.sum()), int(sees_any_N[1:].sum())
    counts = torch.tensor([n, n, n, n, n_later, n, n], dtype=torch.float64)
    is_softmax = head.inputs.spec.normalizer == "softmax"
    has_meaning = [is_softmax, is_self, True, is_self, is_self and n_later > 0, id_M is not None, special_M is not None]
    return torch.where(torch.tensor(has_meaning), totals / counts, float("nan")).float()


def _block_sums(
    rows: slice, keys: slice, weights_NM: torch.Tensor, id_M: torch.Tensor | None, special_M: torch.Tensor | None
) -> torch.Tensor:
    """Sums over the rows of a block, in the order of _NAMES."""
    query_N, key_M = torch.arange(rows.start, rows.stop), torch.arange(keys.start, keys.stop)
    distance_NM = (query_N[:, None] - key_M).abs().float()
    sums = [
        torch.special.entr(weights_NM).sum(),
        (weights_NM * distance_NM).sum(),
        weights_NM[:, key_M == 0].sum(),
        weights_NM.diagonal(rows.start - keys.start).sum(),
        weights_NM.diagonal(rows.start - keys.start - 1).sum(),
        torch.zeros((), dtype=torch.float32),
        torch.zeros((), dtype=torch.float32),
    ]
    if id_M is not None:
        is_same_NM = (id_M[rows][:, None] == id_M[keys]) & (distance_NM > 0)
        sums[5] = weights_NM[is_same_NM].sum()
    if special_M is not None:
        sums[6] = weights_NM[:, special_M[keys]].sum()
    return torch.stack(sums).double()
