"""What the model would say after each layer (nostalgebraist 2020, "interpreting GPT: the logit lens").

The residual stream after a layer goes through the final norm and the output head, as the last one does. So the last
row is the model's own output. Shape letters: L layers, N positions, C model width, V outputs.
"""

from __future__ import annotations

import torch

from core_model.cancel import CancelToken
from core_model.errors import TraceError
from core_model.nn.inference import plain_inference
from core_model.nn.transformer import Transformer
from core_model.results import LogitLens, read_only
from core_model.sites import layer_site
from core_model.trace.trace import Trace
from core_model.trace.views import check_count

LENS_SITES = ("*.residual_after",)
"""What `run_trace(keep=...)` must name for this analysis."""
_LOGITS = 1 << 20
"""Logits held at once: 4 MiB."""


@plain_inference()
def layer_logits(model: Transformer, trace: Trace, layer: int, positions: slice = slice(None)) -> torch.Tensor:
    """Logits [N, V] that these positions would have if this layer were the last; [V] from a head that pools them."""
    if model.head is None:
        raise TraceError("this model has no output head: there are no logits to look at")
    stack = model.output_stack
    x_BNC = trace.activation_tensor(layer_site(stack.name, layer, "residual_after"))[:, positions]
    if stack.final_norm is not None:
        x_BNC = stack.final_norm(x_BNC)
    return model.logits(x_BNC)[0].float()


@plain_inference()
def logit_lens(model: Transformer, trace: Trace, n: int = 5, cancel: CancelToken | None = None) -> LogitLens:
    """The n likeliest outputs after each layer, with their probabilities, [L, N, n] each; N is 1 for a head that pools.

    Logits of some positions are held at once, never all. Raises TraceError where a head does not choose one of several
    outputs and where n is less than 1, Cancelled between blocks.
    """
    check_count("n", n)
    if model.head is not None and model.head.spec.task in ("replaced_tokens", "answer_span"):
        raise TraceError("the logit lens needs an output head that chooses among outputs: this one scores positions")
    likeliest = [_likeliest(model, trace, layer, n, cancel) for layer in range(model.output_stack.config.n_layers)]
    probabilities, ids = (torch.stack(parts).cpu().numpy() for parts in zip(*likeliest, strict=True))
    return LogitLens(ids=read_only(ids), probabilities=read_only(probabilities))


def _likeliest(
    model: Transformer, trace: Trace, layer: int, n: int, cancel: CancelToken | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities and ids [N, n] of one layer."""
    parts: list[tuple[torch.Tensor, torch.Tensor]] = []
    for positions in _blocks(model, len(trace.hidden)):
        if cancel is not None:
            cancel.check()
        logits_NV = torch.atleast_2d(layer_logits(model, trace, layer, positions))
        parts.append(logits_NV.softmax(-1).topk(min(n, logits_NV.shape[-1]), dim=-1))
    best, ids = zip(*parts, strict=True)
    return torch.cat(best), torch.cat(ids)


def _blocks(model: Transformer, n_positions: int) -> list[slice]:
    """Positions whose logits are held at once; all where the head reads all to say one thing."""
    if model.head is None or model.head.spec.pooling != "each":
        return [slice(None)]
    step = max(1, _LOGITS // model.head.spec.n_outputs)
    return [slice(start, start + step) for start in range(0, n_positions, step)]
