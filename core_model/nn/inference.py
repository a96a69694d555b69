"""A model as it is looked at: without dropout, gradients and autocast, and afterwards as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from core_model.nn.product import without_autocast

_AUTOCASTING = tuple(map(torch.device, ("cpu", "cuda", "mps")))


@contextmanager
def plain_inference() -> Iterator[None]:
    """Torch's inference mode, with products in the dtype of what is multiplied whatever the caller has on.

    What is measured of a model must not depend on whether a training with autocast asks. Decorates functions too.
    """
    with ExitStack() as stack:
        for device in _AUTOCASTING:
            stack.enter_context(without_autocast(device))
        stack.enter_context(torch.inference_mode())
        yield


@contextmanager
def looking_at(model: nn.Module) -> Iterator[None]:
    """Eval mode and `plain_inference`; then every module is in the mode it was in, a frozen layer too."""
    was_training = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with plain_inference():
            yield
    finally:
        for module, was in was_training.items():
            module.training = was
