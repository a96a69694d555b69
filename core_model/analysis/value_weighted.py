"""Attention weighted by what it moves (Kobayashi et al. 2020, "Attention is not only a weight", eq. 5).

A head adds sum_j a_ij f(x_j) to the residual stream, f(x) = (x W_V + b_V) W_O. The weight a_ij says how much of
f(x_j) is taken, the norm of f(x_j) how much there is to take: drawn is a_ij ||f(x_j)||.

Shape letters: M keys, K key heads, D head size, C model width, Y and X pixels down and across.
"""

from __future__ import annotations

import torch

from core_model.cancel import CancelToken, Progress
from core_model.errors import TraceError
from core_model.nn.attention import Attention
from core_model.nn.inference import plain_inference
from core_model.nn.transformer import Transformer
from core_model.results import FloatArray, read_only
from core_model.sites import attention_activation
from core_model.trace.trace import Trace
from core_model.trace.views import checked_range, pool


def value_site(site: str, layer: int) -> str:
    """The activation that `run_trace(keep=...)` must name for this analysis."""
    return attention_activation(site, layer, "value")


@plain_inference()
def value_norms(model: Transformer, trace: Trace, site: str, layer: int, head: int) -> FloatArray:
    """||f(x_j)|| [M] of one head. Needs the values of the layer kept."""
    return read_only(_norms(model, trace, site, layer, head).cpu().numpy())


@plain_inference()
def value_weighted(
    model: Transformer,
    trace: Trace,
    site: str,
    layer: int,
    head: int,
    rows: tuple[int, int] | None = None,
    cols: tuple[int, int] | None = None,
    size: tuple[int, int] = (1024, 1024),
    *,
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """a_ij ||f(x_j)|| [Y, X] of queries `rows` and keys `cols`, at most size[0] x size[1] pixels.

    A pixel is the largest of its ceil(n / size) cells down and across, as in `Trace.view`.
    """
    scores, norm_M = trace.head(site, layer, head), _norms(model, trace, site, layer, head)
    row_range = checked_range("rows", rows, scores.n_queries)
    col_range = checked_range("cols", cols, scores.n_keys)
    picture = pool(scores, row_range, col_range, size, gain_M=norm_M, cancel=cancel, progress=progress)
    return read_only(picture.weights.cpu().numpy())


def _norms(model: Transformer, trace: Trace, site: str, layer: int, head: int) -> torch.Tensor:
    """||f(x_j)|| [M]."""
    trace.head(site, layer, head)  # raises where there is no such head
    attention = _attention_of(model, site, layer)
    v_KMD = trace.activation_tensor(value_site(site, layer))[0]
    spec = attention.spec
    v_MD = v_KMD[head * spec.n_key_heads // spec.n_heads].float()
    output_CD = attention.output.weight[:, head * spec.head_size : (head + 1) * spec.head_size].float()
    return (v_MD @ output_CD.T).norm(dim=-1)


def _attention_of(model: Transformer, site: str, layer: int) -> Attention:
    name, kind = site.split(".")
    if kind == "pool":
        probe = None if model.vectors is None else getattr(model.vectors, name).pool
        attention = None if probe is None else probe.attention
    else:
        module = model.stack(name).layer(layer)
        attention = module.cross_attention if kind == "cross" else module.attention
    if not isinstance(attention, Attention):
        raise TraceError(f"site is {site!r}: layer {layer} of this model has no such attention")
    return attention
