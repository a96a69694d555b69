"""The product of float32 matrices, by the faster of the two libraries that PyTorch has for it on a CPU.

PyTorch leaves such products to MKL, which keeps to AVX2 on processors of other makers than Intel: 210 GFLOP/s on two
cores that reach 480 with AVX-512 (EPYC of 2024). oneDNN, in the same build of PyTorch, uses what the processor has.

Shape letters: N rows, K parts, C width given, E width made.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional

for _cache in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    # Both keep half a megabyte for each shape met, 1024 of them, and it lies between the results whose memory is freed:
    # texts of 1200 lengths, one after another, took 9 GB. Read at their first use.
    os.environ.setdefault(_cache, "64")

_LEAST_PRODUCTS, _LEAST_TRAINED_PRODUCTS = 1 << 21, 1 << 24
"""Multiply-adds from which oneDNN is worth its call: 12 us, and as much again for what autograd keeps."""
_LEAST_ROWS = 16
"""Rows from which it is the faster one: of few, most time goes into reading the weights."""


def product(x: torch.Tensor, weight_EC: torch.Tensor, bias_E: torch.Tensor | None = None) -> torch.Tensor:
    """x [..., N, C] @ weight_EC.T + bias_E: [..., N, E], as torch.nn.functional.linear."""
    n_rows = x.shape[:-1].numel()
    is_trained = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight_EC, bias_E))
    n_least = _LEAST_TRAINED_PRODUCTS if is_trained else _LEAST_PRODUCTS
    is_large = n_rows >= _LEAST_ROWS and n_rows * weight_EC.numel() >= n_least
    if not is_large or not _is_taken(x, weight_EC, bias_E) or not onednn_is_faster():
        return functional.linear(x, weight_EC, bias_E)
    x_NC, n_more = x.flatten(0, -2), few_sizes(n_rows) - n_rows
    if n_more:
        x_NC = functional.pad(x_NC, (0, 0, 0, n_more))
    y_NE = _TrainedProduct.apply(x_NC, weight_EC, bias_E) if is_trained else _onednn(x_NC, weight_EC, bias_E)
    return y_NE[:n_rows].unflatten(0, x.shape[:-1])


def few_sizes(n: int) -> int:
    """The next larger of 16 sizes between a power of two and the next, of multiples of 16 at least.

    oneDNN makes a program for each shape it meets, in about a millisecond.
    """
    step = max(16, 1 << max(0, (n - 1).bit_length() - 5))
    return -(-n // step) * step


def grouped_product(x_NKC: torch.Tensor, weight_KEC: torch.Tensor, bias_KE: torch.Tensor) -> torch.Tensor:
    """Each of K parts of x by weights of its own, x_NKC[:, k] @ weight_KEC[k].T + bias_KE[k]: [N, K, E] in float32."""
    if x_NKC.device.type != "cpu" or not onednn_is_faster():
        with without_autocast(x_NKC.device):
            return torch.baddbmm(bias_KE[:, None], x_NKC.transpose(0, 1), weight_KEC.mT).transpose(0, 1)
    # oneDNN has it as a convolution of N positions, one wide, in K groups of channels.
    y_1FN1 = torch.mkldnn_convolution(
        x_NKC.reshape(1, len(x_NKC), 1, -1).permute(0, 3, 1, 2),
        weight_KEC.reshape(-1, weight_KEC.shape[2], 1, 1),
        bias_KE.contiguous().flatten(),
        padding=(0, 0),
        stride=(1, 1),
        dilation=(1, 1),
        groups=len(weight_KEC),
    )
    return y_1FN1.permute(0, 2, 3, 1).reshape(len(x_NKC), *bias_KE.shape)


def _is_taken(x: torch.Tensor, weight_EC: torch.Tensor, bias_E: torch.Tensor | None) -> bool:
    """Whether they are what oneDNN is fast and right with: it takes weights with gaps between them a thousand times
    slower, and a bias with gaps for one without."""
    is_float32_on_cpu = x.dtype == weight_EC.dtype == torch.float32 and x.device.type == weight_EC.device.type == "cpu"
    is_dense = weight_EC.is_contiguous() and (bias_E is None or bias_E.is_contiguous())
    return is_float32_on_cpu and is_dense and x.shape[-1] == weight_EC.shape[1] and not torch.is_autocast_enabled("cpu")


@cache
def onednn_is_faster() -> bool:
    """Whether oneDNN multiplies faster here than MKL, PyTorch's own choice, would.

    Told from the processor, not timed: what a machine computes must not depend on what else it did at the time.
    """
    has_both = torch.backends.mkldnn.is_available() and torch.backends.mkl.is_available()
    if not has_both or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    processor = torch.cpu.get_capabilities()
    return processor.get("avx512_f", False) and "Intel" not in processor["cpu_name"]


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Products in the dtype of what is multiplied, also within a training that has autocast on."""
    return torch.autocast(device.type, enabled=False) if torch.is_autocast_enabled(device.type) else nullcontext()


def _onednn(x: torch.Tensor, weight_EC: torch.Tensor, bias_E: torch.Tensor | None) -> torch.Tensor:
    # What torch.compile makes of a linear map on a CPU: PyTorch has no public name for it.
    return torch.ops.mkldnn._linear_pointwise.default(x, weight_EC, bias_E, "none", [], "")


class _TrainedProduct(torch.autograd.Function):
    """The product with its gradients, which are products too."""

    @staticmethod
    def forward(ctx: Any, x_NC: torch.Tensor, weight_EC: torch.Tensor, bias_E: torch.Tensor | None) -> torch.Tensor:
        needs_x, needs_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(x_NC if needs_weight else None, weight_EC if needs_x else None)
        return _onednn(x_NC, weight_EC, bias_E)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_NE: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        x_NC, weight_EC = ctx.saved_tensors
        return (
            None if weight_EC is None else _onednn(grad_NE, weight_EC.t(), None),
            # Rows with gaps between them would be a thousand times slower here.
            None if x_NC is None else _onednn(grad_NE.t(), x_NC.contiguous().t(), None),
            grad_NE.sum(0) if ctx.needs_input_grad[2] else None,
        )
