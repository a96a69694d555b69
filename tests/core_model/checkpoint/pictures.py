"""Small models of pictures from the transformers library, pictures for them, and what the library computes of those."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers import PreTrainedModel

from tests.core_model.checkpoint.references import seeded

SIZES: dict[str, Any] = {
    "hidden_size": 30,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "image_size": 21,
    "patch_size": 7,
    "num_channels": 2,
    "num_labels": 3,
}
"""Unusual sizes: odd numbers of layers, heads and patches, two channels."""
WIDE = {**SIZES, "intermediate_size": 37}
SHARED = {**WIDE, "use_shared_relative_position_bias": True}


def tiny(family: str, kind: str, sizes: dict[str, Any]) -> PreTrainedModel:
    """A small model of one of the library's classes with weights that make its attention anything but flat."""
    config = getattr(transformers, f"{family}Config")(**sizes, attn_implementation="eager")
    return seeded(getattr(transformers, f"{family}{kind}")(config))


def pixels_for(size: int | list[int], n_channels: int) -> torch.Tensor:
    rows, columns = (size, size) if isinstance(size, int) else size
    return torch.randn(n_channels, rows, columns, generator=torch.Generator().manual_seed(1))


def computed(model: PreTrainedModel, **given: torch.Tensor) -> Any:
    """What the library computes of one example, eagerly, with all attention maps."""
    library: Any = model
    with torch.no_grad():
        return library(**{name: tensor[None] for name, tensor in given.items()}, output_attentions=True)
