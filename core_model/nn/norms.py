"""Layer normalisation (Ba et al. 2016) and root-mean-square normalisation (Zhang and Sennrich 2019)."""

from __future__ import annotations

import torch
from torch import nn

from core_model.config import NormSpec


class Norm(nn.Module):
    """What both have: a gain over the last axis of `shape`, learned as weight or as 1 + weight; see NormSpec."""

    def __init__(self, shape: int | tuple[int, ...], spec: NormSpec) -> None:
        super().__init__()
        self.eps = spec.eps
        self.unit_offset = spec.unit_offset
        has_bias = spec.kind == "layer" and spec.weight and spec.bias
        self.weight = nn.Parameter(torch.empty(shape)) if spec.weight else None
        self.bias = nn.Parameter(torch.empty(shape)) if has_bias else None
        self.reset()

    @torch.no_grad()
    def reset(self) -> None:
        """Gain 1, bias 0: what a new norm starts with."""
        if self.weight is not None:
            self.weight.fill_(0 if self.unit_offset else 1)
        if self.bias is not None:
            self.bias.zero_()


class RMSNorm(Norm):
    """x / sqrt(mean(x^2) + eps) * gain over the last axis, in float32 whatever the dtype of x.

    A gain of 1 + weight is applied before rounding back (Gemma), a plain one after (Llama).
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = nn.functional.rms_norm(x.float(), x.shape[-1:], eps=self.eps)
        if self.weight is None:
            return normed.to(x.dtype)
        if self.unit_offset:
            return (normed * (1 + self.weight.float())).to(x.dtype)
        return self.weight * normed.to(x.dtype)


class LayerNorm(Norm):
    """(x - mean) / sqrt(var + eps) * gain + bias over the last axis."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gain = 1 + self.weight if self.unit_offset and self.weight is not None else self.weight
        if gain is None or gain.dim() == 1:
            return nn.functional.layer_norm(x, x.shape[-1:], gain, self.bias, self.eps)
        normed = nn.functional.layer_norm(x, x.shape[-1:], eps=self.eps)
        return normed * gain if self.bias is None else normed * gain + self.bias


def make_norm(spec: NormSpec, shape: int | tuple[int, ...]) -> Norm:
    """The norm a spec describes, with a gain of `shape` (more than one axis: a gain for each head)."""
    return LayerNorm(shape, spec) if spec.kind == "layer" else RMSNorm(shape, spec)
