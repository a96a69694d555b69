"""Attention rollout (Abnar and Zuidema 2020, section 3): how much of each input token reaches a position through all
layers.

Shape letters: R rows asked for, N tokens, M keys of a block.
"""

from __future__ import annotations

import torch

from core_model.analysis.blocks import row_blocks
from core_model.cancel import CancelToken, Progress
from core_model.errors import TraceError
from core_model.nn.inference import plain_inference
from core_model.results import FloatArray, read_only
from core_model.trace.trace import Trace
from core_model.trace.views import checked_range


@plain_inference()
def rollout(
    trace: Trace,
    site: str,
    rows: tuple[int, int] | None = None,
    *,
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Rows [R, N] of A_L ... A_1, where A_l is the mean over heads plus the identity (the residual), rows made to sum
    to 1.

    Only the asked rows are carried from the last layer down, so memory is R x N. Each layer costs one pass over its
    heads.
    """
    if not site.endswith("self"):
        raise TraceError(f"site is {site}: rollout follows self-attention through the layers")
    n_layers, n_heads, n, _ = trace.shape(site)
    asked = checked_range("rows", rows, n)
    flow_RN = torch.zeros(asked.stop - asked.start, n, dtype=torch.float32)
    flow_RN.diagonal(asked.start).fill_(1.0)
    for layer in reversed(range(n_layers)):
        flow_RN = _through_layer(trace, site, layer, n_heads, flow_RN, cancel)
        if progress is not None:
            progress((n_layers - layer) / n_layers)
    return read_only(flow_RN.numpy())


def _through_layer(
    trace: Trace, site: str, layer: int, n_heads: int, flow_RN: torch.Tensor, cancel: CancelToken | None
) -> torch.Tensor:
    """flow @ A for one layer. A's rows are divided by their sum: 2, or what sinks, ReLU or a full mask leave."""
    moved_RN = torch.zeros_like(flow_RN)
    row_sum_N = torch.ones(flow_RN.shape[1], dtype=torch.float32)
    spec = trace.heads(site, layer).spec
    for head in range(n_heads):
        scores = trace.head(site, layer, head)
        if spec.normalizer == "softmax" and not spec.sinks:
            row_sum_N += scores.sees_any().float().cpu() / n_heads
            continue
        for rows, _, weights_NM in row_blocks(scores, cancel):
            row_sum_N[rows] += weights_NM.sum(1).cpu() / n_heads
    scaled_RN = flow_RN / row_sum_N
    for head in range(n_heads):
        for rows, keys, weights_NM in row_blocks(trace.head(site, layer, head), cancel):
            moved_RN[:, keys] += scaled_RN[:, rows] @ weights_NM.cpu() / n_heads
    return moved_RN + scaled_RN
