"""One weight of a model, by our name, without building the model."""

from __future__ import annotations

import torch

from core_model.checkpoint.matching import Match
from core_model.checkpoint.shards import TensorStore
from core_model.results import FloatArray


def read_weight(matched: Match, store: TensorStore, name: str) -> FloatArray:
    """The weight in float32, as the model would have it; what it is stored in is held meanwhile, and nothing after."""
    line = next(line for line in matched.assignments if name in line.ours)
    theirs = [torch.from_numpy(store.read(stored)) for stored in line.theirs]
    ours = line.conversion.to_ours(theirs, [matched.shapes[one] for one in line.ours])
    return ours[line.ours.index(name)].numpy()
