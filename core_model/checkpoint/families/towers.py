"""What CLIP and SigLIP share: a tower of text and one of vision, alone or beside each other in one file.

Shown are the towers. What takes their outputs into one space and compares them there is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families.conversion import FIRST_ROW
from core_model.checkpoint.families.decoders import equal_heads
from core_model.checkpoint.families.family import Foreign, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Positive, Rate, TokenId, activation
from core_model.checkpoint.families.vision import rows_and_columns
from core_model.config import (
    EmbeddingSpec,
    FeedForwardSpec,
    LayerSpec,
    LearnedPositions,
    MaskSpec,
    ModelConfig,
    NormSpec,
    PatchEmbedding,
    ResidualSpec,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import ConfigError

PLACES = {
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "d_model": "hidden_size",
    "d_hidden": "intermediate_size",
    "activation": "hidden_act",
    "eps": "layer_norm_eps",
}
TEXT_PLACES = {**PLACES, "vocab_size": "vocab_size", "max_length": "max_position_embeddings"}
PAIR_PLACES = {name: f"text_config.{key}" for name, key in TEXT_PLACES.items()}
BUFFERS = (r"(\w+\.)*embeddings\.position_ids",)
_LAYER = "encoder.layers.{i}"


@dataclass(frozen=True, kw_only=True)
class TowerKeys:
    """The keys of config.json that both towers have."""

    hidden_size: Count
    intermediate_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    hidden_act: str
    layer_norm_eps: Positive
    attention_dropout: Rate = 0.0

    @property
    def norm(self) -> NormSpec:
        """Every norm of the tower."""
        return NormSpec(eps=self.layer_norm_eps)

    def stack(
        self,
        embedding: EmbeddingSpec,
        n_positions: int,
        *,
        causal: bool = False,
        has_final_norm: bool = True,
    ) -> StackConfig:
        """A tower of pre-norm layers over an embedding with learned positions."""
        equal_heads(self, "hidden_size", "num_attention_heads")
        residual = ResidualSpec(before=self.norm)
        layer = LayerSpec(
            attention=multi_head(
                self.hidden_size,
                self.num_attention_heads,
                mask=MaskSpec(causal=causal),
                dropout=self.attention_dropout,
            ),
            attention_residual=residual,
            feed_forward=FeedForwardSpec(
                d_hidden=self.intermediate_size, activation=activation("hidden_act", self.hidden_act)
            ),
            feed_forward_residual=residual,
        )
        return StackConfig(
            d_model=self.hidden_size,
            embedding=embedding,
            position=LearnedPositions(max_length=n_positions),
            layers=(layer,) * self.num_hidden_layers,
            final_norm=self.norm if has_final_norm else None,
        )


@dataclass(frozen=True, kw_only=True)
class TextKeys(TowerKeys):
    """The keys of the text tower."""

    vocab_size: Count
    max_position_embeddings: Count
    bos_token_id: TokenId = None
    eos_token_id: TokenId = None
    pad_token_id: TokenId = None

    @property
    def tokens(self) -> TokenEmbedding:
        """Its token table."""
        return TokenEmbedding(vocab_size=self.vocab_size, d_embedding=self.hidden_size)


@dataclass(frozen=True, kw_only=True)
class VisionKeys(TowerKeys):
    """The keys of the vision tower."""

    image_size: Count | list[Count]
    patch_size: Count | list[Count]
    num_channels: Count = 3

    def patches(self, **more: Any) -> PatchEmbedding:
        """Its patches; `more` of the PatchEmbedding."""
        return PatchEmbedding(
            image_size=rows_and_columns("image_size", self.image_size),
            patch_size=rows_and_columns("patch_size", self.patch_size),
            n_channels=self.num_channels,
            **more,
        )


def text_rows(theirs: str) -> tuple[Row, ...]:
    """The names of a text tower that begin with `theirs`."""
    return (
        row(f"{theirs}embeddings.token_embedding.weight", "text.embedding.token.weight"),
        *_stack_rows(theirs, "text"),
        row(f"{theirs}final_layer_norm.*", "text.final_norm.*"),
    )


def vision_rows(theirs: str) -> tuple[Row, ...]:
    """The names of a vision tower that begin with `theirs`."""
    return (
        row(f"{theirs}embeddings.class_embedding", "vision.embedding.class_tokens", conversion=FIRST_ROW),
        row(f"{theirs}embeddings.patch_embedding.*", "vision.embedding.patches.*"),
        row(f"{theirs}pre_layrnorm.*", "vision.embedding.norm.*"),
        *_stack_rows(theirs, "vision"),
        row(f"{theirs}post_layernorm.*", "vision.final_norm.*"),
    )


def _stack_rows(theirs: str, name: str) -> tuple[Row, ...]:
    their_layer, our_layer = f"{theirs}{_LAYER}", f"{name}.layers.{{i}}"
    parts = (("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"), ("out_proj", "output"))
    return (
        row(f"{theirs}embeddings.position_embedding.weight", f"{name}.position.weight"),
        *(row(f"{their_layer}.self_attn.{part}.*", f"{our_layer}.attention.{ours}.*") for part, ours in parts),
        row(f"{their_layer}.layer_norm1.*", f"{our_layer}.attention_residual.before.*"),
        row(f"{their_layer}.layer_norm2.*", f"{our_layer}.feed_forward_residual.before.*"),
        row(f"{their_layer}.mlp.fc1.*", f"{our_layer}.feed_forward.input.*"),
        row(f"{their_layer}.mlp.fc2.*", f"{our_layer}.feed_forward.output.*"),
    )


def text_sizes(weights: Weights) -> Mapping[str, object]:
    """What the shapes of a text tower alone tell."""
    table = "embeddings.token_embedding.weight"
    return {
        **_sizes(weights),
        "vocab_size": weights.size(table, 0),
        "hidden_size": weights.size(table, 1),
        "max_position_embeddings": weights.size("embeddings.position_embedding.weight", 0),
    }


def vision_sizes(weights: Weights) -> Mapping[str, object]:
    """What the shapes of a vision tower alone tell; images are taken to be square, as their patches."""
    patches = "embeddings.patch_embedding.weight"
    patch, n_positions = weights.size(patches, 2), weights.size("embeddings.position_embedding.weight", 0)
    n_patches = (n_positions or 0) - ("embeddings.class_embedding" in weights)
    side = round(max(n_patches, 0) ** 0.5)
    return {
        **_sizes(weights),
        "hidden_size": weights.size(patches, 0),
        "num_channels": weights.size(patches, 1),
        "patch_size": patch,
        "image_size": side * patch if side and patch else None,
    }


def _sizes(weights: Weights) -> Mapping[str, object]:
    fc1 = f"{_LAYER}.mlp.fc1.weight"
    return {
        "num_hidden_layers": weights.n_layers(fc1) or None,
        "intermediate_size": weights.size(fc1.format(i=0), 0),
    }


def write(config: ModelConfig) -> Foreign:
    """Towers cannot be saved as a family: the projections behind them, which such a file must hold, are not read."""
    raise ConfigError("a tower of text or vision cannot be saved: what compares its output with the other is not read")
