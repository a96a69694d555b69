"""What turns the last hidden states into outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from core_model.config.checks import given, require_choices, require_counts, require_positive
from core_model.config.layers import Activation
from core_model.config.norms import NormSpec
from core_model.errors import ConfigError

Pooling: TypeAlias = Literal[
    "each", "first", "last", "mean", "first_two", "mean_patches", "patches", "first_and_mean_patches"
]


@dataclass(frozen=True, kw_only=True)
class HeadTransform:
    """A linear map, an activation and a norm before the output head (BERT's masked-token head, its pooler)."""

    d_output: int
    activation: Activation
    norm: NormSpec | None = None
    bias: bool = True

    def __post_init__(self) -> None:
        require_choices(self)
        require_counts(self, 1, "d_output")


@dataclass(frozen=True, kw_only=True)
class HeadSpec:
    """What turns the last hidden states into logits: `pooling` picks the positions, then transform, then a linear map.

    "patches" are the positions that are patches of an image. "first_two" (DeiT's two class tokens) and
    "first_and_mean_patches" (DINOv2) put two vectors side by side. `norm` is of what was picked. `tied` uses the token
    embedding as the linear map's weight. `scale` multiplies and `soft_cap` bounds the logits. The one output of
    "replaced_tokens" (ELECTRA's discriminator) is a logit a position, [N] and not [N, 1]; those of "image_tokens" are
    codes of patches, which BEiT learns to guess where they are masked.
    """

    n_outputs: int
    task: Literal[
        "language_model",
        "masked_language_model",
        "replaced_tokens",
        "sequence_classes",
        "token_classes",
        "answer_span",
        "image_classes",
        "image_tokens",
    ]
    pooling: Pooling = "each"
    tied: bool = False
    bias: bool = False
    norm: NormSpec | None = None
    transform: HeadTransform | None = None
    scale: float = 1.0
    soft_cap: float | None = None
    labels: tuple[str, ...] = ()

    @property
    def n_pooled(self) -> int:
        """How many vectors of the model's width it reads side by side."""
        return 2 if self.pooling in ("first_two", "first_and_mean_patches") else 1

    def __post_init__(self) -> None:
        require_choices(self)
        require_counts(self, 1, "n_outputs")
        if self.task == "replaced_tokens" and self.n_outputs != 1:
            raise ConfigError(f"n_outputs is {self.n_outputs}: whether a token was replaced is one logit")
        require_positive(self, "scale", *given(self, "soft_cap"))
