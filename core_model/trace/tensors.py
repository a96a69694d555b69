"""Inputs as the tensors each stack of a model reads, once they fit it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from core_model.config import AudioEmbedding, GridPositions, ModelConfig, PatchEmbedding, StackConfig, TokenEmbedding
from core_model.errors import TraceError
from core_model.nn.transformer import Transformer
from core_model.trace.inputs import Ids, Inputs
from core_model.wording import counted


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenTensors:
    """What the stacks read, by name in the order they run, with a batch axis on the model's device; one of two towers
    may be absent. type_ids_BN are of the first."""

    by_stack: dict[str, torch.Tensor]
    type_ids_BN: torch.Tensor | None

    @property
    def first(self) -> torch.Tensor:
        """What the first stack reads."""
        return next(iter(self.by_stack.values()))

    @property
    def second(self) -> torch.Tensor | None:
        """What the decoder beside an encoder reads; None without one."""
        return next(iter([*self.by_stack.values()][1:]), None)

    def n_tokens(self, config: ModelConfig) -> tuple[int, ...]:
        """How many vectors the layers of each stack of the model read; 0 for a tower that is given nothing."""
        return tuple(
            _n_vectors(stack, self.by_stack[name]) if name in self.by_stack else 0
            for name, stack in config.stacks.items()
        )

    def notes(self, config: ModelConfig) -> tuple[str, ...]:
        """What the model leaves out of a picture, and adds to what it learned, so that it can read it."""
        told: list[str] = []
        for name, given in self.by_stack.items():
            spec = config.stacks[name].embedding
            if not isinstance(spec, PatchEmbedding):
                continue
            size = given.shape[2], given.shape[3]
            grid, spare = spec.grid_of(size), [side % patch for side, patch in zip(size, spec.patch_size, strict=True)]
            if any(spare):
                cut = " and ".join(counted(n, noun) for n, noun in zip(spare, ("row", "column"), strict=True) if n)
                told.append(f"{cut} of pixels at the end left out: not enough for a patch")
            if grid != spec.grid and config.stacks[name].position is not None:
                learned = _by(spec.grid)
                told.append(f"positions of {_by(grid)} patches interpolated from the {learned} learned (bicubic)")
        return tuple(told)


def checked_tensors(model: Transformer, inputs: Inputs) -> GivenTensors:
    """The tensors of inputs that fit the model.

    Raises TraceError when one is missing, has another size, or is of a kind that no stack of this model reads.
    """
    config, parameter = model.config, next(model.parameters())
    arrays: dict[str, np.ndarray] = {}
    read: set[str] = {"type_ids"}
    for name, stack in config.stacks.items():
        is_second = name == "decoder" and config.encoder is not None
        names = _names(stack, "decoder_" if is_second else "")
        array = _checked(stack, inputs, names)
        read.update(names)
        if array is not None:
            arrays[name] = array
        elif not config.has_towers:
            raise TraceError(_absent(names, is_second=is_second))
    _require_all_read(inputs, read)
    if not arrays:
        raise TraceError("nothing was given to either tower: give ids or pixels")
    first = next(iter(config.stacks.values())).embedding
    types = None
    if isinstance(first, TokenEmbedding) and first.n_types:
        types = _known("type_ids", inputs.type_ids, first.n_types)
    given = GivenTensors(
        by_stack={name: _batched(array, parameter) for name, array in arrays.items()},
        type_ids_BN=None if types is None else _batched(types, parameter),
    )
    _require_names_for_all(config, inputs, given)
    return given


def _names(stack: StackConfig, prefix: str) -> tuple[str, ...]:
    """The fields of Inputs that a stack reads, one of them."""
    if isinstance(stack.embedding, PatchEmbedding):
        return ("pixels",)
    if isinstance(stack.embedding, AudioEmbedding):
        return ("features",)
    vectors = f"{prefix}embeddings"
    return (f"{prefix}ids", vectors) if isinstance(stack.embedding, TokenEmbedding) else (vectors,)


def _absent(names: Sequence[str], *, is_second: bool) -> str:
    given = " or ".join(names)
    if is_second:
        return f"this model has an encoder and a decoder: give {given} (the target) as well"
    return f"this model reads {given}: give them"


def _require_all_read(inputs: Inputs, read: set[str]) -> None:
    for name in ("ids", "embeddings", "pixels", "features", "decoder_ids", "decoder_embeddings"):
        if getattr(inputs, name) is not None and name not in read:
            reason = "this model is one stack only" if name.startswith("decoder_") else "this model does not read them"
            raise TraceError(f"{name} were given, but {reason}: leave them out")


def _require_names_for_all(config: ModelConfig, inputs: Inputs, given: GivenTensors) -> None:
    """Refuse names of patches or frames that are not as many as there will be."""
    for name, n_vectors in zip(config.stacks, given.n_tokens(config), strict=True):
        named = inputs.tokens_of(name)
        if named is not None and len(named) != n_vectors:
            raise TraceError(f"{len(named)} tokens are named, but the {name} reads {n_vectors}: name each, or none")


def _checked(stack: StackConfig, inputs: Inputs, names: Sequence[str]) -> np.ndarray | None:
    """What is given of what a stack reads, once it has the sizes of the model."""
    spec = stack.embedding
    array = next((getattr(inputs, name) for name in names if getattr(inputs, name) is not None), None)
    if array is None:
        return None
    if isinstance(spec, PatchEmbedding):
        _require_readable(stack, spec, array.shape)
        return array
    if isinstance(spec, AudioEmbedding):
        if array.shape[0] != spec.n_features:
            raise TraceError(f"features have {array.shape[0]} rows: this model reads {spec.n_features} a frame")
        return array
    if np.issubdtype(array.dtype, np.integer):
        return _known(names[0], array, stack.tokens.vocab_size)
    width = spec.d_embedding if isinstance(spec, TokenEmbedding) else stack.d_model
    if array.shape[1] != width:
        raise TraceError(f"{names[-1]} are {array.shape[1]} wide: this model takes vectors of {width}")
    return array


def _require_readable(stack: StackConfig, spec: PatchEmbedding, shape: tuple[int, ...]) -> None:
    """Refuse pixels of other channels, and of a size for which there are no positions."""
    n_channels, *size = shape
    if n_channels != spec.n_channels:
        raise TraceError(f"pixels have {n_channels} channels: this model reads {spec.n_channels}")
    grid, told = spec.grid_of((size[0], size[1])), f"pixels are {_by(size)} (rows x columns)"
    if 0 in grid:
        raise TraceError(f"{told}: this model reads patches of {_by(spec.patch_size)}, so that they hold none")
    biased = any(isinstance(layer.attention.position, GridPositions) for layer in stack.layers)
    if grid != spec.grid and biased:
        raise TraceError(f"{told}: this model has biases for the steps between patches of {_by(spec.image_size)} only")


def _by(size: Sequence[int]) -> str:
    return f"{size[0]} x {size[1]}"


def _known(name: str, given: Ids | None, n_rows: int) -> np.ndarray | None:
    """The ids, once all of them are rows of the model's table."""
    if given is None:
        return None
    ids = np.asarray(given)
    beyond = np.flatnonzero((ids < 0) | (ids >= n_rows))
    if len(beyond):
        index = int(beyond[0])
        raise TraceError(f"{name}[{index}] is {ids[index]}: this model knows 0 to {n_rows - 1}")
    return ids


def _batched(array: np.ndarray, parameter: torch.Tensor) -> torch.Tensor:
    """A batch of one on the parameter's device; vectors in its dtype, ids as they are."""
    batch = torch.from_numpy(array)[None]
    return batch.to(parameter) if batch.is_floating_point() else batch.to(parameter.device)


def _n_vectors(stack: StackConfig, given: torch.Tensor) -> int:
    spec = stack.embedding
    if isinstance(spec, PatchEmbedding):
        return spec.n_tokens((given.shape[2], given.shape[3]))
    return spec.n_tokens(given.shape[2]) if isinstance(spec, AudioEmbedding) else given.shape[1]
