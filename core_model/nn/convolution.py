"""What neighbouring tokens tell each other beside attention (DeBERTa-v2).

Shape letters: B batch, N positions, C model width.
"""

from __future__ import annotations

import torch
from torch import nn

from core_model.config import ConvolutionSpec
from core_model.nn.feedforward import ACTIVATIONS
from core_model.nn.norms import make_norm


class NeighbourConvolution(nn.Module):
    """norm(added + activation(convolution(x))), with zeros in the place of padding and beyond the ends."""

    def __init__(self, spec: ConvolutionSpec, d_model: int) -> None:
        super().__init__()
        self.spec = spec
        self.mix = nn.Conv1d(d_model, d_model, spec.kernel_size, padding=spec.kernel_size // 2, groups=spec.n_groups)
        self.norm = make_norm(spec.norm, d_model)

    def forward(
        self, x_BNC: torch.Tensor, added_BNC: torch.Tensor, key_mask_BN: torch.Tensor | None = None
    ) -> torch.Tensor:
        if key_mask_BN is not None:
            x_BNC = x_BNC.masked_fill(~key_mask_BN[..., None], 0)
        return self.norm(added_BNC + ACTIVATIONS[self.spec.activation](self.mix(x_BNC.mT).mT))
