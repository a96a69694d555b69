"""Attention weighted by what it moves (Kobayashi et al. 2020, "Attention is not only a weight", eq. 5).

A head adds sum_j a_ij f(x_j) to the residual stream, f(x) = (x W_V + b_V) W_O. The weight a_ij says how much of
f(x_j) is taken, the norm of f(x_j) how much there is to take: drawn is a_ij ||f(x_j)||.

Shape letters: M keys, K key heads, D head size, C model width.
"""

from __future__ import annotations

from core_model.errors import TraceError
from core_model.nn.attention import Attention
from core_model.nn.transformer import Transformer
from core_model.results import FloatArray, read_only
from core_model.sites import attention_activation
from core_model.trace.trace import Trace


def value_site(site: str, layer: int) -> str:
    """The activation that `run_trace(keep=...)` must name for this analysis."""
    return attention_activation(site, layer, "value")


def value_norms(model: Transformer, trace: Trace, site: str, layer: int, head: int) -> FloatArray:
    """||f(x_j)|| [M] of one head: multiply the columns of its attention by it. Needs the layer's values kept."""
    attention = _attention_of(model, site, layer)
    v_KMD = trace.activation_tensor(value_site(site, layer))[0]
    spec = attention.spec
    v_MD = v_KMD[head * spec.n_key_heads // spec.n_heads].float()
    output_CD = attention.output.weight[:, head * spec.head_size : (head + 1) * spec.head_size].float()
    return read_only((v_MD @ output_CD.detach().T).norm(dim=-1).cpu().numpy())


def _attention_of(model: Transformer, site: str, layer: int) -> Attention:
    name, kind = site.split(".")
    stack = model.encoder if name == "encoder" else model.decoder
    if stack is None:
        raise TraceError(f"site is {site!r}: this model has no {name}")
    attention = stack.layer(layer).cross_attention if kind == "cross" else stack.layer(layer).attention
    if attention is None:
        raise TraceError(f"site is {site!r}: layer {layer} has no cross-attention")
    return attention
