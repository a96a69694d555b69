"""What torch does under the hood, counted instead of timed: scores evaluated and the largest tensor made."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

KERNEL = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
PRODUCTS = (torch.ops.aten.mm.default, torch.ops.aten.mm.out, torch.ops.aten.bmm.default)


class Watch(TorchDispatchMode):
    """Counts while it is entered: `n_products` of the fused kernel and of matrix products, `largest` in elements."""

    def __init__(self) -> None:
        super().__init__()
        self.n_products = 0
        self.largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self.largest = max(self.largest, *(tensor.untyped_storage().size() // tensor.itemsize for tensor in made), 0)
        if function is KERNEL:
            q_BHND, k_BHMD = args[:2]
            self.n_products += q_BHND.shape[:3].numel() * k_BHMD.shape[2]
        elif function in PRODUCTS:
            self.n_products += result.numel()
        return result
