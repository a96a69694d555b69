"""How a new model's weights are drawn.

xavier_uniform: U(-a, a) with a = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010, eq. 16).
xavier_normal: N(0, sqrt(2 / (fan_in + fan_out))), from the same paper.
normal: N(0, 0.02), embeddings too (Devlin et al. 2019).
gpt2: as normal, but what writes to the residual stream is divided by sqrt(2 L) for L layers (Radford et al. 2019, 2.3).
zero_output: as xavier_uniform, but what writes to the residual stream is 0: every layer starts as the identity.

Embeddings are N(0, 1 / sqrt(d)) unless said otherwise, biases 0, norms the identity. Q, K and V are drawn each on its
own: drawn as one fused d -> 3d matrix they would get the fan-out 3d, and weights too small by sqrt(2).
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import torch
from torch import nn

from core_model.errors import ConfigError
from core_model.nn.transformer import Transformer

Scheme: TypeAlias = Literal["xavier_uniform", "xavier_normal", "normal", "gpt2", "zero_output"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
_NORMAL_STD = 0.02


@torch.no_grad()
def initialize(model: Transformer, scheme: Scheme = "xavier_uniform", generator: torch.Generator | None = None) -> None:
    """Draw all weights of a model anew, in the order of its parameters. Raises ConfigError for an unknown scheme."""
    if scheme not in SCHEMES:
        raise ConfigError(f"initialization is {scheme!r}: expected one of {', '.join(SCHEMES)}")
    n_layers = sum(stack.n_layers for stack in model.config.stacks.values())
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            _reset_vector(name, parameter)
        elif "embedding" in name or ".position" in name:
            is_small = scheme in ("normal", "gpt2")
            nn.init.normal_(
                parameter, std=_NORMAL_STD if is_small else parameter.shape[-1] ** -0.5, generator=generator
            )
        else:
            _draw_matrix(
                parameter,
                scheme,
                name.endswith(("attention.output.weight", "feed_forward.output.weight")),
                n_layers,
                generator,
            )


def _draw_matrix(
    weight: torch.Tensor, scheme: Scheme, writes_residual: bool, n_layers: int, generator: torch.Generator | None
) -> None:
    if scheme == "zero_output" and writes_residual:
        nn.init.zeros_(weight)
    elif scheme in ("xavier_uniform", "zero_output"):
        nn.init.xavier_uniform_(weight, generator=generator)
    elif scheme == "xavier_normal":
        nn.init.xavier_normal_(weight, generator=generator)
    else:
        is_scaled = scheme == "gpt2" and writes_residual
        nn.init.normal_(
            weight, std=_NORMAL_STD / (2 * n_layers) ** 0.5 if is_scaled else _NORMAL_STD, generator=generator
        )


def _reset_vector(name: str, parameter: torch.Tensor) -> None:
    """Norm gains at 1, every other vector at 0."""
    is_gain = name.endswith("weight")
    nn.init.ones_(parameter) if is_gain else nn.init.zeros_(parameter)
