"""Mixed precision: autocast for the forward pass, loss scaling where float16 needs it, and a stop at the first NaN.

Weights, optimizer state, softmax and loss stay in float32 (Micikevicius et al. 2018). Autocast belongs to the thread
that enters it: everything here is called by the thread that trains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from core_model.errors import ConfigError

_DTYPES: dict[str, torch.dtype | None] = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}

SMALLEST_SCALE = 2.0**-10
"""A loss scale below this does not mend gradients that overflow: they are not finite at any scale."""


def precisions(device: torch.device) -> tuple[str, ...]:
    """The precisions a device can train in. On a CPU float16 is much slower than float32: to see loss scaling work."""
    if device.type == "cpu":
        return ("fp32", "bf16", "fp16")
    if device.type == "cuda":
        bf16 = ("bf16",) if torch.cuda.is_bf16_supported(including_emulation=False) else ()
        return ("fp32", *bf16, "fp16")
    return ("fp32",)


class NotFiniteError(ArithmeticError):
    """A number that is NaN or infinite, and the first tensor where it was found."""

    def __init__(self, tensor: str, value: str) -> None:
        super().__init__(f"{tensor} is {value}")
        self.tensor, self.value = tensor, value


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one optimizer step did. `loss_scale` is the one used, None without scaling.

    `grad_norm` is that before clipping, infinite where float16 overflowed, and the update was skipped.
    """

    grad_norm: float
    loss_scale: float | None


class MixedPrecision:
    """Runs forward passes and updates of one model in one precision."""

    def __init__(self, name: str, device: torch.device) -> None:
        """Raises ConfigError naming what the device can do."""
        if name not in precisions(device):
            raise ConfigError(f"precision is {name!r}: {device} can train in {', '.join(precisions(device))}")
        self._dtype = _DTYPES[name]
        self._device = device
        self._scaler = torch.amp.GradScaler(device.type, enabled=name == "fp16")

    def autocast(self) -> torch.autocast:
        """The context of a forward pass."""
        return torch.autocast(self._device.type, dtype=self._dtype, enabled=self._dtype is not None)

    def update(
        self, loss: torch.Tensor, optimizer: torch.optim.Optimizer, model: nn.Module, *, clip: float | None
    ) -> Update:
        """Gradients of a finite loss, clipped to a norm, and one step of the optimizer; gradients are then gone.

        Raises NotFiniteError, before any weight has changed, when gradients are not finite for another reason than the
        loss scale.
        """
        scale = self._scaler.get_scale() if self._scaler.is_enabled() else None
        self._scaler.scale(loss).backward()
        self._scaler.unscale_(optimizer)
        parameters = [parameter for parameter in model.parameters() if parameter.grad is not None]
        grad_norm = nn.utils.clip_grad_norm_(parameters, torch.inf if clip is None else clip).item()
        if not math.isfinite(grad_norm) and (scale is None or scale < SMALLEST_SCALE):
            gradients = ((f"gradient of {name}", parameter.grad) for name, parameter in model.named_parameters())
            raise first_not_finite(gradients) or NotFiniteError("gradient norm", "infinite")
        self._scaler.step(optimizer)
        self._scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return Update(grad_norm=grad_norm, loss_scale=scale)


def first_not_finite(tensors: Iterable[tuple[str, torch.Tensor | None]]) -> NotFiniteError | None:
    """The error for the first of named tensors that holds a NaN or an infinity; None when all are finite."""
    for name, tensor in tensors:
        if tensor is not None and not tensor.isfinite().all():
            return NotFiniteError(name, "nan" if tensor.isnan().any() else "infinite")
    return None
