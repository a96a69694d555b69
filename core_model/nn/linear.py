"""Linear maps, as fast as the processor can, and those of long inputs stopped on their way.

Shape letters: B batch, N positions, T all positions (B*N), C width given, E width made.
"""

from __future__ import annotations

import torch
from torch import nn

from core_model.nn.product import product
from core_model.nn.tap import PIECE_PRODUCTS, Tap


class Linear(nn.Linear):
    """x @ weight.T + bias."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return product(input, self.weight, self.bias)


def mapped(linear: nn.Linear, x_BNC: torch.Tensor, tap: Tap | None) -> torch.Tensor:
    """linear(x) [B, N, E]; long work on a CPU in blocks of positions, between which the tap may stop it.

    What is trained, or computed elsewhere, is one product.
    """
    n_products = x_BNC.numel() * linear.out_features
    is_cut = n_products > PIECE_PRODUCTS and x_BNC.device.type == "cpu" and not torch.is_grad_enabled()
    if tap is None or not is_cut:
        return linear(x_BNC)
    x_TC = x_BNC.flatten(0, -2)
    y_TE = x_TC.new_empty(len(x_TC), linear.out_features)
    n_blocks = -(-n_products // PIECE_PRODUCTS)
    for x, y in zip(x_TC.tensor_split(n_blocks), y_TE.tensor_split(n_blocks), strict=True):
        y.copy_(linear(x))
        tap.pause()
    return y_TE.unflatten(0, x_BNC.shape[:-1])
