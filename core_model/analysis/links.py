"""The strongest links of a head, and what each token gives and receives.

With weights a_ij of query i for key j:

    top links   the n largest a_ij
    received    sum_i a_ij, the accumulated attention of a key (Zhang et al. 2023, "H2O: Heavy-Hitter Oracle")
    given       sum_j a_ij: 1, or what learned sinks, ReLU or a full mask leave of it

Shape letters: N queries, M keys.
"""

from __future__ import annotations

import torch

from core_model.analysis.blocks import row_blocks
from core_model.cancel import CancelToken
from core_model.results import Links, TokenTotals, read_only
from core_model.trace.trace import Trace
from core_model.trace.views import check_count


def top_links(trace: Trace, site: str, layer: int, head: int, n: int = 50, cancel: CancelToken | None = None) -> Links:
    """The n largest weights of a head, largest first, with their queries and keys; fewer where fewer are above 0.

    Raises TraceError where n is less than 1.
    """
    check_count("n", n)
    weight = torch.zeros(0, dtype=torch.float32)
    query = key = torch.zeros(0, dtype=torch.long)
    for rows, keys, weights_NM in row_blocks(trace.head(site, layer, head), cancel):
        # topk puts NaN first: below 0 it leaves the place to the weights that are numbers.
        best, flat = weights_NM.flatten().nan_to_num(nan=-1.0).topk(min(n, weights_NM.numel()))
        weight = torch.cat((weight, best.cpu()))
        query = torch.cat((query, rows.start + flat.cpu() // weights_NM.shape[1]))
        key = torch.cat((key, keys.start + flat.cpu() % weights_NM.shape[1]))
        kept = weight.argsort(descending=True, stable=True)[:n]
        weight, query, key = weight[kept], query[kept], key[kept]
    above = weight > 0
    return Links(
        weight=read_only(weight[above].numpy()),
        query=read_only(query[above].numpy()),
        key=read_only(key[above].numpy()),
    )


def token_totals(trace: Trace, site: str, layer: int, head: int, cancel: CancelToken | None = None) -> TokenTotals:
    """Attention each key receives (the sum of its column) and each query gives (the sum of its row)."""
    scores = trace.head(site, layer, head)
    received_M = torch.zeros(scores.n_keys, dtype=torch.float64)
    given_N = torch.zeros(scores.n_queries, dtype=torch.float32)
    for rows, keys, weights_NM in row_blocks(scores, cancel):
        received_M[keys] += weights_NM.sum(0).cpu().double()
        given_N[rows] += weights_NM.sum(1).cpu()
    return TokenTotals(received=read_only(received_M.float().numpy()), given=read_only(given_N.numpy()))
