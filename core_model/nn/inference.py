"""A model as it is looked at: without dropout and gradients, and afterwards as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def looking_at(model: nn.Module) -> Iterator[None]:
    """Eval mode and torch's inference mode; then every module is in the mode it was in, a frozen layer too."""
    was_training = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module, was in was_training.items():
            module.training = was
