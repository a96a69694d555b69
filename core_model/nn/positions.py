"""How a transformer knows order: tables added to embeddings, rotations of queries and keys, biases of scores.

Shape letters: N positions (queries), M keys, H heads, D head size, R rotated dimensions, C model width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeGuard

import torch

from core_model.config import (
    AlibiPositions,
    BucketedPositions,
    GridPositions,
    RotaryPositions,
    RotaryScaling,
    SinusoidalPositions,
    TablePositions,
)


def sinusoidal_dimensions(spec: SinusoidalPositions, d_model: int) -> tuple[slice, slice]:
    """Where the sines and where the cosines stand among d_model dimensions.

    An odd width has one sine more; with `endpoint` the last dimension is neither, as in fairseq.
    """
    n_cosines = d_model // 2
    n_sines = n_cosines if spec.endpoint else d_model - n_cosines
    if spec.layout == "interleaved":
        return slice(0, 2 * n_sines, 2), slice(1, 2 * n_cosines, 2)
    return slice(n_sines), slice(n_sines, n_sines + n_cosines)


def sinusoidal_table(spec: SinusoidalPositions, position_N: torch.Tensor, d_model: int) -> torch.Tensor:
    """Sines and cosines [N, C] of each position (Vaswani et al. 2017, section 3.5); any width, odd too.

    Dimension pair i has angle position / base^(2i / C), with `endpoint` position / base^(i / (C/2 - 1)).
    """
    sines, cosines = sinusoidal_dimensions(spec, d_model)
    table_NC = torch.zeros(len(position_N), d_model, dtype=torch.float64, device=position_N.device)
    n_sines, n_cosines = (table_NC[:, some].shape[1] for some in (sines, cosines))
    pair = torch.arange(n_sines, dtype=torch.float64, device=position_N.device)
    exponent = pair / max(n_cosines - 1, 1) if spec.endpoint else 2 * pair / d_model
    angle_NP = (position_N.double() + spec.offset)[:, None] * torch.exp(-math.log(spec.base) * exponent)
    table_NC[:, sines] = angle_NP.sin()
    table_NC[:, cosines] = angle_NP[:, :n_cosines].cos()
    return table_NC.float()


def rotary_frequencies(spec: RotaryPositions, length: int) -> tuple[torch.Tensor, float]:
    """Radians a position for each pair [R/2], and the factor on cos and sin, for an input of `length` tokens."""
    if spec.frequencies:
        return torch.tensor(spec.frequencies, dtype=torch.float64, device="cpu"), 1.0
    plain = spec.base ** -(torch.arange(0, spec.n_rotated, 2, dtype=torch.float64, device="cpu") / spec.n_rotated)
    scaling = spec.scaling
    if scaling is None:
        return plain, 1.0
    return _SCALINGS[scaling.kind](spec, scaling, plain, length), scaling.attention_factor


def turns_alike(spec: RotaryPositions, length: int, other: int) -> bool:
    """Whether tokens are turned by the same angles in inputs of either length; dynamic and longrope may not."""
    return torch.equal(rotary_frequencies(spec, length)[0], rotary_frequencies(spec, other)[0])


def _linear(spec: RotaryPositions, scaling: RotaryScaling, plain: torch.Tensor, length: int) -> torch.Tensor:
    return plain / scaling.factor


def _dynamic(spec: RotaryPositions, scaling: RotaryScaling, plain: torch.Tensor, length: int) -> torch.Tensor:
    stretch = scaling.factor * max(length, scaling.original_length) / scaling.original_length - (scaling.factor - 1)
    base = spec.base * stretch ** (spec.n_rotated / (spec.n_rotated - 2))
    return base ** -(torch.arange(0, spec.n_rotated, 2, dtype=torch.float64, device="cpu") / spec.n_rotated)


def _yarn(spec: RotaryPositions, scaling: RotaryScaling, plain: torch.Tensor, length: int) -> torch.Tensor:
    def dimension_turning(n_turns: float) -> float:
        """The pair that turns n_turns times over the original length (Peng et al. 2023, eq. 17 solved for the pair)."""
        wavelength = scaling.original_length / (n_turns * 2 * math.pi)
        return spec.n_rotated * math.log(wavelength) / (2 * math.log(spec.base))

    low, high = dimension_turning(scaling.beta_fast), dimension_turning(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, spec.n_rotated - 1)
    width = high - low if high != low else 0.001
    ramp = ((torch.arange(spec.n_rotated // 2, dtype=torch.float64, device="cpu") - low) / width).clamp(0, 1)
    return plain / scaling.factor * ramp + plain * (1 - ramp)


def _llama3(spec: RotaryPositions, scaling: RotaryScaling, plain: torch.Tensor, length: int) -> torch.Tensor:
    turns = scaling.original_length * plain / (2 * math.pi)
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    smooth = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - smooth) * plain / scaling.factor + smooth * plain


def _longrope(spec: RotaryPositions, scaling: RotaryScaling, plain: torch.Tensor, length: int) -> torch.Tensor:
    factors = scaling.long_factors if length > scaling.original_length else scaling.short_factors
    return plain / torch.tensor(factors, dtype=torch.float64, device="cpu")


_SCALINGS = {"linear": _linear, "dynamic": _dynamic, "yarn": _yarn, "llama3": _llama3, "longrope": _longrope}


def rotate(x_BHND: torch.Tensor, spec: RotaryPositions, position_N: torch.Tensor, length: int) -> torch.Tensor:
    """Turn the first R dimensions of each head by angles that grow with position (Su et al. 2021, eq. 15 and 34)."""
    frequency_P, factor = rotary_frequencies(spec, length)
    # An Apple GPU has no float64, without which angles of far positions are coarse.
    position_N = position_N.cpu() if position_N.device.type == "mps" else position_N
    angle_NP = position_N.double()[:, None] * frequency_P.to(position_N.device)
    cos_NP, sin_NP = ((turn_NP * factor).to(x_BHND) for turn_NP in (angle_NP.cos(), angle_NP.sin()))
    turned, rest = x_BHND[..., : spec.n_rotated], x_BHND[..., spec.n_rotated :]
    if spec.layout == "halves":
        a, b = turned.chunk(2, dim=-1)
    else:
        a, b = turned[..., 0::2], turned[..., 1::2]
    a, b = a * cos_NP - b * sin_NP, b * cos_NP + a * sin_NP
    turned = torch.cat((a, b), dim=-1) if spec.layout == "halves" else torch.stack((a, b), dim=-1).flatten(-2)
    return torch.cat((turned, rest), dim=-1) if rest.shape[-1] else turned


def alibi_slopes(spec: AlibiPositions, n_heads: int) -> torch.Tensor:
    """One slope a head [H]: geometric; counts that are no power of 2 borrow from the next (Press et al. 2022)."""
    n_power = 2 ** math.floor(math.log2(n_heads))
    slopes = [2 ** (-spec.max_bias * (h + 1) / n_power) for h in range(n_power)]
    slopes += [2 ** (-spec.max_bias * (2 * h + 1) / (2 * n_power)) for h in range(n_heads - n_power)]
    return torch.tensor(slopes, dtype=torch.float32, device="cpu")


def relative_bucket(spec: BucketedPositions, distance: torch.Tensor) -> torch.Tensor:
    """T5's bucket of key position minus query position: half exact, the rest logarithmic up to max_distance.

    Raffel et al. 2020, section 2.1; a causal model counts only keys behind the query.
    """
    n_buckets = spec.n_buckets
    bucket = torch.zeros_like(distance)
    if spec.bidirectional:
        n_buckets //= 2
        bucket = (distance > 0).long() * n_buckets
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    n_exact = n_buckets // 2
    ratio = torch.log(distance.clamp(min=1).float() / n_exact) / math.log(spec.max_distance / n_exact)
    far = (n_exact + (ratio * (n_buckets - n_exact)).long()).clamp(max=n_buckets - 1)
    return bucket + torch.where(distance < n_exact, distance, far)


def grid_bucket(spec: GridPositions, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """BEiT's bucket of a query and a key at these positions, which broadcast: 0 is the class token, then patches.

    The steps from key to query, (row, column), are counted row by row from (1 - rows, 1 - columns); the last three
    buckets are for a class token that is the query, the key, or both.
    """
    n_rows, n_columns = spec.grid
    row = (query - 1) // n_columns - (key - 1) // n_columns + n_rows - 1
    column = (query - 1) % n_columns - (key - 1) % n_columns + n_columns - 1
    bucket = row * (2 * n_columns - 1) + column
    of_class = torch.where(key > 0, spec.n_buckets - 3, spec.n_buckets - 1)
    return torch.where(query > 0, torch.where(key > 0, bucket, spec.n_buckets - 2), of_class)


def score_bias(
    spec: AlibiPositions | TablePositions,
    weights: torch.Tensor,
    queries: range,
    keys: Sequence[range],
    *,
    keys_first: bool = False,
) -> torch.Tensor:
    """What relative position adds to scores [H, N, M], or [H, M, N], of queries and keys at these positions.

    Weights are ALiBi's slopes [H] or a table [buckets, H].
    """
    if len(keys) == 1 and queries.step == keys[0].step == 1 and _depends_on_distance_alone(spec):
        return _bias_of_ranges(spec, weights, queries, keys[0], keys_first)
    query_N, *pieces = (torch.arange(at.start, at.stop, at.step, device=weights.device) for at in (queries, *keys))
    key_M = torch.cat(pieces)
    if isinstance(spec, AlibiPositions) and spec.rounded:
        # Positions are rounded before they are multiplied. PyTorch does so by itself, but not where there is only one.
        query_HN, key_HM = ((weights.bfloat16()[:, None] * at.bfloat16()).float() for at in (query_N, key_M))
        bias_HNM = (key_HM[:, None, :] - query_HN[:, :, None]) * spec.scale
    elif isinstance(spec, GridPositions):
        bias_HNM = weights[grid_bucket(spec, query_N[:, None], key_M[None, :])].permute(2, 0, 1)
    else:
        bias_HNM = _bias_of_distances(spec, weights, key_M[None, :] - query_N[:, None])
    return bias_HNM.mT if keys_first else bias_HNM


def _bias_of_distances(
    spec: AlibiPositions | BucketedPositions, weights: torch.Tensor, distance: torch.Tensor
) -> torch.Tensor:
    """What key position minus query position adds to the scores of each head [H, ...]."""
    if isinstance(spec, AlibiPositions):
        return -weights.view(-1, *[1] * distance.ndim) * spec.scale * distance.abs()
    return weights[relative_bucket(spec, distance)].movedim(-1, 0)


def _depends_on_distance_alone(
    spec: AlibiPositions | TablePositions,
) -> TypeGuard[AlibiPositions | BucketedPositions]:
    return not isinstance(spec, GridPositions) and not (isinstance(spec, AlibiPositions) and spec.rounded)


def _bias_of_ranges(
    spec: AlibiPositions | BucketedPositions, weights: torch.Tensor, queries: range, keys: range, keys_first: bool
) -> torch.Tensor:
    """The same for each pair of consecutive queries and keys, each of whose distances is looked up once: a row of the
    block is the one before it, one distance on."""
    down, across, sign = (keys, queries, -1) if keys_first else (queries, keys, 1)
    distance_D = sign * torch.arange(across[0] - down[-1], across[-1] - down[0] + 1, device=weights.device)
    bias_HD = _bias_of_distances(spec, weights, distance_D).contiguous()
    return bias_HD.unfold(-1, len(across), 1).flip(1)
