"""What one forward pass hands to everything that takes part in it.

Shape letters: B batch, N positions, M encoder positions, R distances, C model width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from core_model.nn.cache import KeyValueCache
from core_model.nn.tap import Tap


@dataclass(frozen=True, kw_only=True, eq=False)
class Pass:
    """What the layers of one forward pass share: padding, the encoder's output, vectors of distances, the cache, who
    listens."""

    key_mask_BN: torch.Tensor | None = None
    memory_BMC: torch.Tensor | None = None
    memory_mask_BM: torch.Tensor | None = None
    distance_RC: torch.Tensor | None = None
    cache: KeyValueCache | None = None
    tap: Tap | None = None


ALONE = Pass()
"""Of a module that is called by itself."""
