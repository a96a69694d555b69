"""Layer normalisation (Ba et al. 2016) and root-mean-square normalisation (Zhang and Sennrich 2019)."""

from __future__ import annotations

import torch
from torch import nn

from core_model.config import NormSpec


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight over the last axis, in float32 whatever the dtype of x.

    With `unit_offset` the gain is 1 + weight, applied before rounding back (Gemma).
    """

    def __init__(self, shape: int | tuple[int, ...], spec: NormSpec) -> None:
        super().__init__()
        self.eps = spec.eps
        self.unit_offset = spec.unit_offset
        start = torch.zeros(shape) if spec.unit_offset else torch.ones(shape)
        self.weight = nn.Parameter(start) if spec.weight else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        if self.weight is None:
            return normed.to(x.dtype)
        if self.unit_offset:
            return (normed * (1 + self.weight.float())).to(x.dtype)
        return self.weight * normed.to(x.dtype)


class LayerNorm(nn.Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last axis, which is the last of `shape`."""

    def __init__(self, shape: int | tuple[int, ...], spec: NormSpec) -> None:
        super().__init__()
        self.eps = spec.eps
        self.weight = nn.Parameter(torch.ones(shape)) if spec.weight else None
        self.bias = nn.Parameter(torch.zeros(shape)) if spec.bias and spec.weight else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.weight is None or self.weight.dim() == 1:
            return nn.functional.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)
        normed = nn.functional.layer_norm(x, x.shape[-1:], eps=self.eps)
        return normed * self.weight if self.bias is None else normed * self.weight + self.bias


def make_norm(spec: NormSpec, shape: int | tuple[int, ...]) -> nn.Module:
    """The norm a spec describes, with a gain of `shape` (more than one axis: a gain for each head)."""
    return LayerNorm(shape, spec) if spec.kind == "layer" else RMSNorm(shape, spec)
