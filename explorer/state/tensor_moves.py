"""What a person can do in the tensor browser: functions from state to state."""

from __future__ import annotations

from dataclasses import replace

from core_model.results import HeadPart, Pooling
from explorer.state.moves import Move
from explorer.state.tensors import TensorPort


def pick_tensor(name: str) -> Move:
    """Look at a stored tensor of the open checkpoint."""
    return lambda state: replace(
        state, tensors=replace(state.tensors, source=state.source, name=name, part=None, port=None)
    )


def pick_head_part(part: HeadPart | None) -> Move:
    """Look at a part of the selected head; None goes back to the stored tensor."""
    return lambda state: replace(state, tensors=replace(state.tensors, part=part, port=None))


def set_pooling(pooling: Pooling) -> Move:
    """Let a pixel stand for its numbers otherwise."""
    return lambda state: replace(state, tensors=replace(state.tensors, pooling=pooling))


def set_tensor_port(port: TensorPort | None) -> Move:
    """Another part of the tensor is on screen; None: the whole."""
    return lambda state: replace(state, tensors=replace(state.tensors, port=port))
