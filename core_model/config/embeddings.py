"""What a stack reads, and how it becomes vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from core_model.config.checks import require_choices, require_counts, require_positive, require_rate
from core_model.config.layers import Activation
from core_model.config.norms import NormSpec
from core_model.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ZeroedTokens:
    """Masking a token by a vector of zeros, as dropout of whole tokens (ESM-2, Lin et al. 2023).

    Where the id is `token` the token vector is 0. All others are multiplied by (1 - `trained_share`) over the share of
    other tokens in this input, so that as much goes in as in training, when `trained_share` of the tokens were masked.
    """

    token: int
    trained_share: float

    def __post_init__(self) -> None:
        require_counts(self, 0, "token")
        require_rate(self, "trained_share")


@dataclass(frozen=True, kw_only=True)
class TokenEmbedding:
    """Token ids to vectors: a table of `vocab_size` rows of `d_embedding`, projected to the model's width when they
    differ.

    Token vectors are multiplied by `scale` (the article: sqrt(d_model)), `n_types` rows of token types (BERT) and
    absolute positions are added, `norm` follows, then dropout. `projects` says what is projected: that sum at its end
    (ALBERT, ELECTRA), or the token vectors before anything is added to them (OPT 350M); `always_projects` where the
    widths are equal, too (ALBERT). `zeroed` are tokens that go in as zeros.
    """

    vocab_size: int
    d_embedding: int
    n_types: int = 0
    scale: float = 1.0
    norm: NormSpec | None = None
    projects: Literal["sum", "tokens"] = "sum"
    always_projects: bool = False
    projection_bias: bool = True
    zeroed: ZeroedTokens | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        require_choices(self)
        require_counts(self, 1, "vocab_size", "d_embedding")
        require_counts(self, 0, "n_types")
        require_positive(self, "scale")
        require_rate(self, "dropout")


@dataclass(frozen=True, kw_only=True)
class VectorEmbedding:
    """The stack is given vectors of its own width (torch.nn.Transformer); absolute positions are added."""


@dataclass(frozen=True, kw_only=True)
class PatchEmbedding:
    """An image [channels, rows, columns] to vectors: one linear map of each square of pixels (Dosovitskiy et al. 2021).

    `n_class_tokens` learned vectors come first; then, once absolute positions are added, `n_registers` more that have
    none are put behind them (Darcet et al. 2024). The first of all these is the class token where there is one:
    without `has_class_token` all are registers. `norm` follows, then dropout. Sizes are rows, columns of pixels.

    An image of another size than those of training has positions from between those its patches learned, by a bicubic
    interpolation of rows and columns; with `smooths_positions` by torch's with antialias, a softer cubic that smooths
    where there are fewer patches.
    """

    image_size: tuple[int, int]
    patch_size: tuple[int, int]
    n_channels: int = 3
    n_class_tokens: int = 1
    n_registers: int = 0
    has_class_token: bool = True
    bias: bool = True
    norm: NormSpec | None = None
    dropout: float = 0.0
    smooths_positions: bool = False

    def __post_init__(self) -> None:
        require_counts(self, 1, "n_channels")
        require_counts(self, 0, "n_class_tokens", "n_registers")
        require_rate(self, "dropout")
        for name in ("image_size", "patch_size"):
            size = getattr(self, name)
            if len(size) != 2 or any(type(side) is not int or side < 1 for side in size):
                raise ConfigError(f"{name} is {size}: it must be two whole numbers of at least 1, rows and columns")
        if 0 in self.grid:
            raise ConfigError(f"patch_size is {self.patch_size}: an image of {self.image_size} holds no such patch")

    @property
    def grid(self) -> tuple[int, int]:
        """How many rows and columns of whole patches an image of training has."""
        return self.grid_of(self.image_size)

    def grid_of(self, size: tuple[int, int]) -> tuple[int, int]:
        """How many rows and columns of whole patches an image of that size has."""
        return size[0] // self.patch_size[0], size[1] // self.patch_size[1]

    @property
    def n_positions(self) -> int:
        """Number of vectors with a learned position: class tokens and the patches of an image of training."""
        return self.n_class_tokens + self.grid[0] * self.grid[1]

    def n_tokens(self, size: tuple[int, int]) -> int:
        """Number of vectors the layers read of an image of that size."""
        n_rows, n_columns = self.grid_of(size)
        return self.n_class_tokens + self.n_registers + n_rows * n_columns


@dataclass(frozen=True, kw_only=True)
class AudioEmbedding:
    """A spectrogram [n_features, frames] to vectors by two convolutions over time, an activation after each (Radford et
    al. 2022, section 2.2). The second takes steps of `stride`, so there is a vector every `stride` frames."""

    n_features: int
    kernel_size: int = 3
    stride: int = 2
    activation: Activation = "gelu"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        require_choices(self)
        require_counts(self, 1, "n_features", "kernel_size", "stride")
        require_rate(self, "dropout")
        if self.kernel_size % 2 == 0:
            raise ConfigError(f"kernel_size is {self.kernel_size}: it must be odd, to look as far back as ahead")

    def n_tokens(self, n_frames: int) -> int:
        """Number of vectors of a spectrogram of n_frames."""
        return -(-n_frames // self.stride)


EmbeddingSpec: TypeAlias = TokenEmbedding | VectorEmbedding | PatchEmbedding | AudioEmbedding
