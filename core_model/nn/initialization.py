"""How a new model's weights are drawn.

xavier_uniform: U(-a, a) with a = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010, eq. 16).
xavier_normal: N(0, sqrt(2 / (fan_in + fan_out))), from the same paper.
normal: N(0, 0.02), embeddings too (Devlin et al. 2019).
gpt2: as normal, but what writes to a residual stream is divided by sqrt(N), N the sublayers that write to it, two or
three a layer (Radford et al. 2019, 2.3).
zero_output: as xavier_uniform, but what writes to the residual stream is 0: every layer starts as the identity.

Embeddings are N(0, 1 / sqrt(d)) unless said otherwise, biases 0, norms the identity. Q, K and V are drawn each on its
own: drawn as one fused d -> 3d matrix they would get the fan-out 3d, and weights too small by sqrt(2).
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import torch
from torch import nn

from core_model.config import ModelConfig
from core_model.errors import ConfigError
from core_model.nn.blocks import Residual
from core_model.nn.feedforward import StackedLinear
from core_model.nn.norms import Norm
from core_model.nn.transformer import Transformer

Scheme: TypeAlias = Literal["xavier_uniform", "xavier_normal", "normal", "gpt2", "zero_output"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
_NORMAL_STD = 0.02


@torch.no_grad()
def initialize(model: Transformer, scheme: Scheme = "xavier_uniform", generator: torch.Generator | None = None) -> None:
    """Draw all weights of a model anew, in the order of its modules. Raises ConfigError for an unknown scheme."""
    if scheme not in SCHEMES:
        raise ConfigError(f"initialization is {scheme!r}: expected one of {', '.join(SCHEMES)}")
    for name, module in model.named_modules():
        if isinstance(module, Norm):
            module.reset()
        elif isinstance(module, nn.Embedding):
            std = _NORMAL_STD if scheme in ("normal", "gpt2") else module.embedding_dim**-0.5
            nn.init.normal_(module.weight, std=std, generator=generator)
        elif isinstance(module, Residual):
            if module.learned_scale is not None:
                module.learned_scale.fill_(1)
        elif isinstance(module, nn.Linear | StackedLinear | nn.Conv1d | nn.Conv2d):
            _draw_linear(module, scheme, _n_writers(model.config, name), generator)
        else:
            for parameter in module.parameters(recurse=False):
                parameter.zero_()


def _n_writers(config: ModelConfig, name: str) -> int:
    """How many sublayers write to the residual stream that this linear map writes to; 0 if it writes to none."""
    if ".layers." not in name or not name.endswith(".output"):
        return 0
    layers = config.stacks[name.split(".")[0]].layers
    return sum(2 if layer.cross_attention is None else 3 for layer in layers)


def _draw_linear(
    linear: nn.Linear | StackedLinear | nn.Conv1d | nn.Conv2d,
    scheme: Scheme,
    n_writers: int,
    generator: torch.Generator | None,
) -> None:
    if linear.bias is not None:
        linear.bias.zero_()
    is_stacked = isinstance(linear, StackedLinear)
    for weight in linear.weight if is_stacked else linear.weight.flatten(1)[None]:
        if scheme == "zero_output" and n_writers:
            weight.zero_()
        elif scheme in ("xavier_uniform", "zero_output"):
            nn.init.xavier_uniform_(weight, generator=generator)
        elif scheme == "xavier_normal":
            nn.init.xavier_normal_(weight, generator=generator)
        else:
            std = _NORMAL_STD / n_writers**0.5 if scheme == "gpt2" and n_writers else _NORMAL_STD
            nn.init.normal_(weight, std=std, generator=generator)
