"""Whether a training fits into memory, asked before it starts: a system that runs out of it ends programs unasked."""

from __future__ import annotations

import torch

from core_model.config import ModelConfig
from core_model.counts import n_parameters
from core_model.device import available_memory
from core_model.errors import TrainingError
from core_model.training.settings import TrainingSettings

_FLOAT = 4
_GIB = 1 << 30


def state_bytes(config: ModelConfig) -> int:
    """Bytes of the weights, their gradients and AdamW's two moments, all float32."""
    return 4 * _FLOAT * n_parameters(config)


def activation_bytes(settings: TrainingSettings, config: ModelConfig, max_length: int) -> int:
    """The least that one forward pass keeps for its gradients, in bytes.

    Per token and layer the inputs of two norms and of four projections, queries, keys and values (8 widths), and the
    feed-forward network after its activation; then the logits.
    """
    layer = 8 * settings.d_model + settings.d_hidden
    n_logits = 0 if config.head is None else config.head.n_outputs
    n_values = settings.n_layers * len(config.stacks) * layer + n_logits
    return _FLOAT * settings.batch * max_length * n_values


def require_memory(settings: TrainingSettings, config: ModelConfig, max_length: int, device: torch.device) -> None:
    """TrainingError, with the sizes, when the device has less memory than the training takes at the very least."""
    free = available_memory(device)
    state, activations = state_bytes(config), activation_bytes(settings, config, max_length)
    if free is None or state + activations <= free:
        return
    way_out = "layers, width or feed-forward" if state > activations else "batch or length"
    raise TrainingError(
        f"Training takes at least {(state + activations) / _GIB:,.1f} GiB ({n_parameters(config):,} parameters with "
        f"gradients and moments: {state / _GIB:,.1f} GiB; a batch of {settings.batch} x {max_length} tokens: "
        f"{activations / _GIB:,.1f} GiB), and {device} has {free / _GIB:,.1f} GiB free: choose less {way_out}."
    )
