"""Which part of the model wrote a logit: direct logit attribution (Elhage et al. 2021, "A mathematical framework").

In a pre-norm model the last residual stream is the embedding plus what every head and feed-forward added. The final
norm is linear once its scale is fixed to the one of this input, so a logit splits exactly into one term a component.
Shape letters: L layers, H heads, D head size, C model width.
"""

from __future__ import annotations

import torch

from core_model.config import NormSpec
from core_model.errors import TraceError
from core_model.nn.inference import plain_inference
from core_model.nn.transformer import Stack, Transformer
from core_model.results import LogitAttribution, read_only
from core_model.sites import layer_site
from core_model.trace.trace import Trace

ATTRIBUTION_SITES = ("*.residual_before", "*.residual_after", "*.head_output", "*.feed_forward_output")
"""What `run_trace(keep=...)` must name for this analysis."""


@plain_inference()
def logit_attribution(model: Transformer, trace: Trace, position: int, output: int) -> LogitAttribution:
    """The terms of one logit: per head [L, H], per feed-forward [L], embedding, and biases. They sum to the logit.

    Raises TraceError where there is no such logit, and where the terms do not sum to it.
    """
    stack = _attributable(model)
    assert trace.logits is not None
    for name, index, n in zip(("position", "output"), (position, output), trace.logits.shape, strict=True):
        if not 0 <= index < n:
            raise TraceError(f"{name} is {index}: there are logits of {name}s 0 to {n - 1}")
    n_layers = stack.config.n_layers

    def at(layer: int, activation: str) -> torch.Tensor:
        return trace.activation_tensor(layer_site(stack.name, layer, activation))[0].float()

    last_C = at(n_layers - 1, "residual_after")[position]
    direction_C, offset = _read_direction(model, stack, last_C, output)
    heads, feed_forward, biases = [], [], offset
    for layer in range(n_layers):
        attention, scale = stack.layer(layer).attention, stack.layer(layer).attention_residual.spec.scale
        out_HD = at(layer, "head_output")[:, position]
        weight_CHD = attention.output.weight.float().unflatten(1, out_HD.shape)
        heads.append(torch.einsum("hd,chd,c->h", out_HD, weight_CHD, direction_C) * scale)
        if attention.output.bias is not None:
            biases += float(attention.output.bias.float() @ direction_C) * scale
        feed_forward.append(at(layer, "feed_forward_output")[position] @ direction_C)
    embedding, logit = float(at(0, "residual_before")[position] @ direction_C), float(trace.logits[position, output])
    terms = torch.cat((torch.stack(heads).flatten(), torch.stack(feed_forward))).cpu().double()
    dtype = trace.activation_tensor(trace.activations[0]).dtype
    reach = float(last_C.double().norm() * direction_C.double().norm())
    _require_sum([*terms.tolist(), embedding, biases], logit, reach * torch.finfo(dtype).eps)
    return LogitAttribution(
        heads=read_only(torch.stack(heads).cpu().numpy()),
        feed_forward=read_only(torch.stack(feed_forward).cpu().numpy()),
        embedding=embedding,
        biases=biases,
        logit=logit,
    )


def _require_sum(terms: list[float], logit: float, rounding: float) -> None:
    """Refuse terms that differ from the logit by more than rounding: something else was added on the way.

    `rounding` is that of one product of the residual stream with the direction it is read in, as each term is.
    """
    if not abs(sum(terms) - logit) <= 1e-4 * (1 + sum(map(abs, terms))) + 16 * rounding * len(terms) ** 0.5:
        raise TraceError(
            f"the parts add up to {sum(terms):.4g}, but the logit is {logit:.4g}: an activation was patched on the "
            "way, or the weights are not those of this trace"
        )


def _attributable(model: Transformer) -> Stack:
    """The output stack, if its logits are a sum over components. Raises TraceError saying why they are not."""
    stack = model.output_stack
    head = None if model.head is None else model.head.spec
    if head is None or head.pooling != "each" or head.transform is not None or head.norm is not None:
        raise TraceError("direct logit attribution needs an output head that reads the last layer directly")
    if head.soft_cap is not None:
        raise TraceError("direct logit attribution needs logits that are not soft-capped: they are no sum of parts")
    if stack.convolution is not None:
        raise TraceError("direct logit attribution needs a stack without a convolution beside its first layer")
    for layer in stack.config.layers:
        residuals = (layer.attention_residual, layer.feed_forward_residual)
        if layer.cross_attention or any(r.total or r.after or r.learned_scale or not r.skip for r in residuals):
            raise TraceError("direct logit attribution needs a pre-norm model without cross-attention")
    return stack


def _read_direction(model: Transformer, stack: Stack, last_C: torch.Tensor, output: int) -> tuple[torch.Tensor, float]:
    """(direction, offset) with logit = direction . residual + offset, the norm's scale fixed to that of last_C."""
    assert model.head is not None
    head = model.head
    table = model.token_table(stack) if head.spec.tied else head.output.weight
    bias = head.output.bias
    assert isinstance(table, torch.Tensor)
    read_C = table[output].float() * head.spec.scale
    offset = float(bias[output]) * head.spec.scale if isinstance(bias, torch.Tensor) else 0.0
    spec, norm = stack.config.final_norm, stack.final_norm
    if spec is None or norm is None:
        return read_C, offset
    parameters = dict(norm.named_parameters())
    if "bias" in parameters:
        offset += float(parameters["bias"].float() @ read_C)
    return _through_norm(spec, parameters.get("weight"), last_C, read_C), offset


def _through_norm(
    spec: NormSpec, weight_C: torch.Tensor | None, last_C: torch.Tensor, read_C: torch.Tensor
) -> torch.Tensor:
    gain_C = torch.ones_like(last_C) if weight_C is None else weight_C.float() + (1.0 if spec.unit_offset else 0.0)
    scaled_C = read_C * gain_C
    if spec.kind == "rms":
        return scaled_C * torch.rsqrt(last_C.square().mean() + spec.eps)
    return (scaled_C - scaled_C.mean()) * torch.rsqrt(last_C.var(correction=0) + spec.eps)
