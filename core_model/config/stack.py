"""One tower of layers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.config.checks import given, require_choices, require_counts
from core_model.config.embeddings import AudioEmbedding, EmbeddingSpec, PatchEmbedding, TokenEmbedding, VectorEmbedding
from core_model.config.layers import Activation, LayerSpec
from core_model.config.norms import NormSpec
from core_model.config.positions import (
    AbsolutePositions,
    DisentangledPositions,
    DistanceTable,
    GridPositions,
    LearnedPositions,
    TablePositions,
)
from core_model.errors import ConfigError

_READS = {VectorEmbedding: "vectors", PatchEmbedding: "pixels", AudioEmbedding: "audio features"}


@dataclass(frozen=True, kw_only=True)
class ConvolutionSpec:
    """A convolution over neighbouring tokens beside the first layer: norm(layer(x) + activation(convolution(x))).

    (DeBERTa-v2.) Beyond the ends there are zeros.
    """

    kernel_size: int
    activation: Activation
    norm: NormSpec
    n_groups: int = 1

    def __post_init__(self) -> None:
        require_choices(self)
        require_counts(self, 1, "kernel_size", "n_groups")
        if self.kernel_size % 2 == 0:
            raise ConfigError(f"kernel_size is {self.kernel_size}: it must be odd, as many tokens before as after")


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    """One tower of layers: embedding, absolute positions, layers, final norm.

    `d_output` is the width that a linear map without a bias then gives the hidden states (OPT 350M); None: they stay.
    `weights_of[i]` is the layer whose weights layer i uses (ALBERT runs one set many times); empty means each its own.
    Without layers it stands for an encoder that is not part of the model: the vectors given are its output.
    """

    d_model: int
    embedding: EmbeddingSpec
    layers: tuple[LayerSpec, ...]
    position: AbsolutePositions | None = None
    final_norm: NormSpec | None = None
    d_output: int | None = None
    weights_of: tuple[int, ...] = ()
    distances: DistanceTable | None = None
    convolution: ConvolutionSpec | None = None

    def __post_init__(self) -> None:
        require_counts(self, 1, "d_model", *given(self, "d_output"))
        if not self.layers and not isinstance(self.embedding, VectorEmbedding):
            raise ConfigError("layers is empty: a stack needs at least one layer, unless it is given vectors")
        self._check_heads()
        self._check_shared_weights()
        self._check_shared_tables()
        self._check_distances()
        self._check_grids()
        patches, n_rows = self.embedding, self.max_length
        if isinstance(patches, PatchEmbedding) and n_rows is not None and n_rows != patches.n_positions:
            raise ConfigError(
                f"position.max_length is {n_rows}: class tokens and patches of one image take {patches.n_positions}"
            )

    def _check_heads(self) -> None:
        crossing = [layer.cross_attention for layer in self.layers if layer.cross_attention is not None]
        for attentions in ([layer.attention for layer in self.layers], crossing):
            counts = [attention.n_heads for attention in attentions]
            if len(set(counts)) > 1:
                raise ConfigError(
                    f"n_heads is {counts} layer by layer: all layers must have as many heads as the first"
                )

    def _check_shared_weights(self) -> None:
        owners = self.weights_of
        if owners and (
            len(owners) != self.n_layers or any(not 0 <= w <= i or owners[w] != w for i, w in enumerate(owners))
        ):
            raise ConfigError(
                f"weights_of is {owners}: it must name, for each of the {self.n_layers} layers, "
                "itself or an earlier one that has weights of its own"
            )
        for index, owner in enumerate(owners):
            if self.layers[index] != self.layers[owner]:
                raise ConfigError(f"weights_of[{index}] is {owner}: layers {index} and {owner} must then be the same")

    def _check_shared_tables(self) -> None:
        positions = [layer.attention.position for layer in self.layers]
        for index, position in enumerate(positions):
            if not isinstance(position, TablePositions) or position.from_layer is None:
                continue
            owners = [i for i, other in enumerate(positions) if other == replace(position, from_layer=None)]
            if position.from_layer not in owners:
                raise ConfigError(
                    f"from_layer of layer {index} is {position.from_layer}: "
                    f"it must name a layer with a table of the same buckets, one of {owners}"
                )

    def _check_distances(self) -> None:
        positions = [layer.attention.position for layer in self.layers]
        spans = {position.span for position in positions if isinstance(position, DisentangledPositions)}
        n_rows = self.distances.n_rows if self.distances else 0
        if spans and spans != {n_rows / 2}:
            raise ConfigError(
                f"distances has {n_rows} rows: attention with distances up to {sorted(spans)} reads twice as many"
            )
        if self.convolution is not None and self.d_model % self.convolution.n_groups:
            raise ConfigError(f"n_groups is {self.convolution.n_groups}: it must divide d_model, {self.d_model}")

    def _check_grids(self) -> None:
        patches = self.embedding
        for position in {layer.attention.position for layer in self.layers}:
            if not isinstance(position, GridPositions):
                continue
            if not isinstance(patches, PatchEmbedding):
                raise ConfigError(f"position.grid is {position.grid}: steps between patches need an image to read")
            if position.grid != patches.grid or (patches.n_class_tokens, patches.n_registers) != (1, 0):
                raise ConfigError(
                    f"position.grid is {position.grid}: the image has {patches.grid} patches, behind "
                    f"{patches.n_class_tokens + patches.n_registers} tokens, and it must be the same grid behind one"
                )

    @property
    def n_layers(self) -> int:
        """Number of layers, each counted as often as it runs."""
        return len(self.layers)

    @property
    def has_projection(self) -> bool:
        """Whether a linear map takes the token embedding to the model's width."""
        tokens = self.embedding
        return isinstance(tokens, TokenEmbedding) and (tokens.always_projects or tokens.d_embedding != self.d_model)

    @property
    def d_position(self) -> int:
        """Width of the absolute positions and token types, and of their sum with the token vectors."""
        tokens = self.embedding
        if isinstance(tokens, TokenEmbedding) and tokens.projects == "sum":
            return tokens.d_embedding
        return self.d_model

    @property
    def tokens(self) -> TokenEmbedding:
        """The token embedding; ConfigError where the stack reads something else."""
        if not isinstance(self.embedding, TokenEmbedding):
            raise ConfigError(f"the model reads {_READS[type(self.embedding)]}: it has no token ids")
        return self.embedding

    def weights_index(self, layer: int) -> int:
        """The layer whose weights this layer uses."""
        return self.weights_of[layer] if self.weights_of else layer

    @property
    def max_length(self) -> int | None:
        """The longest input its positions can name; None where there is no such limit."""
        return self.position.max_length if isinstance(self.position, LearnedPositions) else None
