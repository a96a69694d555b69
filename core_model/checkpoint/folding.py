"""Other words for the same model: the scale of an embedding, which most families lack, multiplied into its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from core_model.config import ModelConfig, TokenEmbedding
from core_model.shapes import tensor_shapes

if TYPE_CHECKING:
    import torch


def folded(config: ModelConfig) -> ModelConfig | None:
    """The config of the same function without a scale of the embedding; None where there is no scale to fold.

    An output head tied to the table gets a weight of its own. Of one stack only.
    """
    if len(config.stacks) != 1:
        return None
    ((name, stack),) = config.stacks.items()
    if not isinstance(stack.embedding, TokenEmbedding) or stack.embedding.scale == 1.0:
        return None
    plain = replace(stack, embedding=replace(stack.embedding, scale=1.0))
    head = config.head and replace(config.head, tied=False)
    return replace(config, head=head, **{name: plain})


def folded_state(config: ModelConfig, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights of `folded(config)`, from those of `config`."""
    plain = folded(config)
    assert plain is not None, "there is a scale to fold"
    ((name, stack),) = config.stacks.items()
    assert isinstance(stack.embedding, TokenEmbedding)
    table = f"{name}.embedding.token.weight"
    heads = dict.fromkeys(tensor_shapes(plain).keys() - tensor_shapes(config).keys(), state[table])
    return {**state, **heads, table: state[table] * stack.embedding.scale}
