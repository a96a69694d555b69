"""What the model would say after each layer (nostalgebraist 2020, "interpreting GPT: the logit lens").

The residual stream after a layer goes through the final norm and the output head, as the last one does. So the last
row is the model's own output. Shape letters: L layers, N positions, C model width, V outputs.
"""

from __future__ import annotations

import torch

from core_model.cancel import CancelToken
from core_model.errors import TraceError
from core_model.nn.transformer import Transformer
from core_model.results import LogitLens, read_only
from core_model.sites import layer_site
from core_model.trace.trace import Trace

LENS_SITES = ("*.residual_after",)
"""What `run_trace(keep=...)` must name for this analysis."""


@torch.inference_mode()
def layer_logits(model: Transformer, trace: Trace, layer: int) -> torch.Tensor:
    """Logits [N, V] the model would give if this layer were its last."""
    if model.head is None:
        raise TraceError("this model has no output head: there are no logits to look at")
    stack = model.output_stack
    x_BNC = trace.activation_tensor(layer_site(stack.name, layer, "residual_after"))
    if stack.final_norm is not None:
        x_BNC = stack.final_norm(x_BNC)
    return model.logits(x_BNC)[0].float()


@torch.inference_mode()
def logit_lens(model: Transformer, trace: Trace, n: int = 5, cancel: CancelToken | None = None) -> LogitLens:
    """The n likeliest outputs after each layer, with their probabilities, [L, N, n] each."""
    ids, probabilities = [], []
    for layer in range(model.output_stack.config.n_layers):
        if cancel is not None:
            cancel.check()
        best, index = layer_logits(model, trace, layer).softmax(-1).topk(n, dim=-1)
        ids.append(index.cpu())
        probabilities.append(best.cpu())
    return LogitLens(
        ids=read_only(torch.stack(ids).numpy()), probabilities=read_only(torch.stack(probabilities).numpy())
    )
