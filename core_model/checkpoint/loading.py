"""Weights from files into a model: one stored tensor at a time, widened in pieces, never a second copy of the model."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from core_model.cancel import CancelToken, Progress
from core_model.checkpoint.health import Examination, TensorHealth
from core_model.checkpoint.matching import Match
from core_model.checkpoint.shards import TensorStore
from core_model.config import ModelConfig
from core_model.device import resolve_device, resolve_dtype
from core_model.nn.transformer import Transformer

_OWN_PAGES_BYTES = 1 << 20


def load_transformer(
    config: ModelConfig,
    matched: Match,
    store: TensorStore,
    *,
    device: str,
    dtype: str,
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> tuple[Transformer, list[TensorHealth]]:
    """The model in evaluation mode with the file's weights, and the health of each tensor. Runs on a worker thread."""
    place = resolve_device(device)
    number = resolve_dtype(dtype, place)
    health: list[TensorHealth] = []
    with torch.device("meta"), _WithoutInitialValues():
        model = Transformer(config)
    state: dict[str, torch.Tensor] = {}
    for done, line in enumerate(matched.assignments):
        if cancel is not None:
            cancel.check()
        theirs = [_read(store, name, number, health) for name in line.theirs]
        ours = line.conversion.to_ours(theirs, [matched.shapes[name] for name in line.ours])
        state.update({name: tensor.contiguous().to(place) for name, tensor in zip(line.ours, ours, strict=True)})
        if progress is not None:
            progress((done + 1) / len(matched.assignments))
    model.load_state_dict(state, strict=True, assign=True)
    return model.eval(), health


class _WithoutInitialValues(TorchFunctionMode):
    """Modules built inside keep their parameters as they are: what torch.nn.init would do to them is left out.

    Beside the time, drawing values for parameters without memory makes torch import its compiler: 800 modules, 80 MB.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return kwargs["tensor"]
        return func(*args, **kwargs)


def _read(store: TensorStore, name: str, dtype: torch.dtype, health: list[TensorHealth]) -> torch.Tensor:
    """One stored tensor in the dtype asked for; bfloat16 and float16 pass through float32 unchanged."""
    entry = store.entries[name]
    flat = _room_for(entry.n_elements, dtype)
    examination = Examination(name, entry.shape)
    for part, piece in store.pieces(name):
        examination.add(part, piece)
        flat[part] = torch.from_numpy(piece)
    health.append(examination.result)
    return flat.view(entry.shape)


def _room_for(n_elements: int, dtype: torch.dtype) -> torch.Tensor:
    """Memory for a tensor; a large one in pages of its own, which go back to the system when it is freed.

    Tensors that a conversion copies are freed between ones that stay, and the allocator would keep their holes: loading
    GPT-2 took 1.7 times its size.
    """
    n_bytes = n_elements * dtype.itemsize
    if n_bytes < _OWN_PAGES_BYTES:
        return torch.empty(n_elements, dtype=dtype)
    return torch.frombuffer(mmap.mmap(-1, n_bytes), dtype=dtype)
