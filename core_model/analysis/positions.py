"""How a model's layer knows the order of its tokens, as the model's own code computes it.

Shape letters: N positions, E embedding width, R rotated dimensions, H heads, n distances.
"""

from __future__ import annotations

import torch

from core_model.config import (
    AlibiPositions,
    DisentangledPositions,
    GridPositions,
    RotaryPositions,
    SinusoidalPositions,
    StackConfig,
    TablePositions,
)
from core_model.errors import TraceError
from core_model.nn.attention import Attention
from core_model.nn.disentangled import distance_row
from core_model.nn.inference import plain_inference
from core_model.nn.positions import alibi_slopes, rotate, score_bias, sinusoidal_dimensions
from core_model.nn.transformer import Stack, Transformer
from core_model.results import FloatArray, PositionEncoding, read_only
from core_model.trace.views import check_count


@plain_inference()
def position_encoding(model: Transformer, stack: str, layer: int, n_positions: int) -> PositionEncoding:
    """What position does in one layer of a stack ("decoder"), for at most `n_positions` positions.

    Where a layer has absolute and relative positions, the relative ones are given. A learned table is cut to its rows.
    Raises TraceError for a stack or a layer that is not there, and for less than one position.
    """
    module = model.stack(stack)
    check_count("n_positions", n_positions)
    if not 0 <= layer < module.config.n_layers:
        raise TraceError(f"layer is {layer}: {stack} has layers 0 to {module.config.n_layers - 1}")
    relative, absolute = module.config.layers[layer].attention.position, module.config.position
    if isinstance(relative, RotaryPositions):
        return PositionEncoding(
            stack=stack,
            layer=layer,
            kind="rotary",
            table=_rotations(relative, n_positions),
            dimensions=_rotary_names(relative),
        )
    if isinstance(relative, DisentangledPositions):
        return _disentangled(module, relative, layer, n_positions)
    if isinstance(relative, GridPositions):
        n_columns = relative.grid[1]
        return PositionEncoding(
            stack=stack,
            layer=layer,
            kind="grid",
            bias=_row_biases(relative, _table(module, relative, layer)),
            distances=torch.arange(1 - n_columns, n_columns).numpy(),
        )
    if relative is not None:
        is_causal = module.config.layers[layer].attention.mask.causal
        distances = range(1 - n_positions, 1 if is_causal else n_positions)
        return PositionEncoding(
            stack=stack,
            layer=layer,
            kind="alibi" if isinstance(relative, AlibiPositions) else "bucketed",
            bias=_biases(module, relative, layer, distances),
            distances=torch.arange(distances.start, distances.stop).numpy(),
        )
    if absolute is None:
        return PositionEncoding(stack=stack, layer=layer, kind="none")
    is_sinusoidal = isinstance(absolute, SinusoidalPositions)
    return PositionEncoding(
        stack=stack,
        layer=layer,
        kind="sinusoidal" if is_sinusoidal else "learned",
        table=_added(module, n_positions),
        dimensions=_sinusoidal_names(absolute, module.config) if is_sinusoidal else _numbers(module.config),
    )


def _disentangled(stack: Stack, spec: DisentangledPositions, layer: int, n_positions: int) -> PositionEncoding:
    """The vector that every distance has before a layer's heads map it."""
    table_RC = stack.distance_vectors()
    assert table_RC is not None
    distance_n = torch.arange(1 - n_positions, n_positions)
    return PositionEncoding(
        stack=stack.name,
        layer=layer,
        kind="disentangled",
        table=_array(table_RC[distance_row(spec, -distance_n)]),
        dimensions=tuple(str(i) for i in range(stack.config.d_model)),
        distances=distance_n.numpy(),
    )


def _added(stack: Stack, n_positions: int) -> FloatArray:
    """What the stack adds to its embeddings [N, E]."""
    length = n_positions if stack.config.max_length is None else min(n_positions, stack.config.max_length)
    table_NE = stack.positions(0, length, torch.zeros(1))
    assert table_NE is not None
    return _array(table_NE)


def _rotations(spec: RotaryPositions, n_positions: int) -> FloatArray:
    """Cosine and sine [N, R] of each pair: what becomes of the vector (1, 0) in every pair, in the model's order."""
    first_R = torch.zeros(spec.n_rotated)
    if spec.layout == "halves":
        first_R[: spec.n_rotated // 2] = 1
    else:
        first_R[0::2] = 1
    x_BHND = first_R.expand(1, 1, n_positions, spec.n_rotated)
    return _array(rotate(x_BHND, spec, torch.arange(n_positions), n_positions)[0, 0])


def _biases(stack: Stack, spec: AlibiPositions | TablePositions, layer: int, distances: range) -> FloatArray:
    """What every head's scores gain [H, n] at each distance."""
    if isinstance(spec, AlibiPositions):
        weights = alibi_slopes(spec, stack.config.layers[layer].attention.n_heads)
    else:
        weights = _table(stack, spec, layer)
    return _array(score_bias(spec, weights, range(1), [distances])[:, 0])


def _row_biases(spec: GridPositions, table: torch.Tensor) -> FloatArray:
    """What every head's scores gain [H, n] at each step along a row of patches, first those back, then those on."""
    n_columns = spec.grid[1]
    first, last = range(1, 2), range(n_columns, n_columns + 1)
    back, on = (score_bias(spec, table, query, [range(1, n_columns + 1)])[:, 0] for query in (last, first))
    return _array(torch.cat((back, on[:, 1:]), dim=-1))


def _table(stack: Stack, spec: TablePositions, layer: int) -> torch.Tensor:
    """The table of biases [buckets, H] that a layer reads."""
    owner = stack.layer(layer if spec.from_layer is None else spec.from_layer).attention
    assert isinstance(owner, Attention) and owner.position_bias is not None
    return owner.position_bias.weight.float().cpu()


def _sinusoidal_names(spec: SinusoidalPositions, config: StackConfig) -> tuple[str, ...]:
    """ "0 sin", "1 cos", ... in the order of the spec's layout; the bare number of a dimension that stays 0."""
    names = list(_numbers(config))
    for kind, dimensions in zip(("sin", "cos"), sinusoidal_dimensions(spec, config.d_position), strict=True):
        names[dimensions] = [f"{name} {kind}" for name in names[dimensions]]
    return tuple(names)


def _rotary_names(spec: RotaryPositions) -> tuple[str, ...]:
    half = spec.n_rotated // 2
    if spec.layout == "halves":
        return tuple(f"{i} {'cos' if i < half else 'sin'}" for i in range(spec.n_rotated))
    return tuple(f"{i} {'sin' if i % 2 else 'cos'}" for i in range(spec.n_rotated))


def _numbers(config: StackConfig) -> tuple[str, ...]:
    return tuple(str(i) for i in range(config.d_position))


def _array(x: torch.Tensor) -> FloatArray:
    return read_only(x.detach().float().cpu().numpy())
