"""CLIP (Radford et al. 2021): a causal text tower and a vision tower, together or one of them alone.

The vision tower's hidden states are those before its last norm, which only its vector goes through.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from core_model.checkpoint.families import towers
from core_model.checkpoint.families.conversion import FIRST_ROW
from core_model.checkpoint.families.family import Weights, row
from core_model.checkpoint.families.fields import Count, Positive, TokenId
from core_model.config import NormSpec, SpecialTokens, StackConfig, VectorSpec

_OLD_END = 2
"""The end token of configs older than transformers#24773, which is not that of their vocabulary: its highest id is."""


@dataclass(frozen=True, kw_only=True)
class ClipTextKeys(towers.TextKeys):
    """The keys of the text tower; what a config leaves out is that of ViT-B/32, as in transformers."""

    hidden_size: Count = 512
    intermediate_size: Count = 2048
    num_hidden_layers: Count = 12
    num_attention_heads: Count = 8
    hidden_act: str = "quick_gelu"
    layer_norm_eps: Positive = 1e-5
    vocab_size: Count = 49408
    max_position_embeddings: Count = 77
    bos_token_id: TokenId = 49406
    eos_token_id: TokenId = 49407
    pad_token_id: TokenId = 1
    projection_dim: Count = 512

    def tower(self) -> StackConfig:
        """A causal one."""
        return self.stack(self.tokens, self.max_position_embeddings, causal=True)

    def vector(self, weights: Weights) -> VectorSpec:
        """The end token's hidden state, mapped where there is a map."""
        end = self.special.end
        return VectorSpec(
            pooling="end",
            end_token=None if end == _OLD_END else end,
            d_output=self.projection_dim if _is_mapped(weights, "text_projection.weight") else None,
        )

    @classmethod
    def of(cls, stack: StackConfig, vector: VectorSpec | None, special: SpecialTokens) -> Self:
        """The keys of a tower."""
        keys = cls(**towers.text_keys(stack, special))
        if vector is None:
            return keys
        end = _OLD_END if vector.end_token is None else vector.end_token
        return replace(keys, eos_token_id=end, projection_dim=vector.d_output or keys.projection_dim)


@dataclass(frozen=True, kw_only=True)
class ClipVisionKeys(towers.VisionKeys):
    """The keys of the vision tower; what a config leaves out is that of ViT-B/32, as in transformers."""

    hidden_size: Count = 768
    intermediate_size: Count = 3072
    num_hidden_layers: Count = 12
    num_attention_heads: Count = 12
    hidden_act: str = "quick_gelu"
    layer_norm_eps: Positive = 1e-5
    image_size: Count | list[Count] = 224
    patch_size: Count | list[Count] = 32
    projection_dim: Count = 512

    def tower(self) -> StackConfig:
        """One whose embedding is normed, and whose last hidden states are not."""
        patches = self.patches(bias=False, norm=NormSpec(eps=self.layer_norm_eps))
        return self.stack(patches, patches.n_positions, has_final_norm=False)

    def vector(self, weights: Weights) -> VectorSpec:
        """The class token's hidden state, normed, and mapped where there is a map."""
        is_mapped = _is_mapped(weights, "visual_projection.weight")
        return VectorSpec(pooling="first", norm=self.norm, d_output=self.projection_dim if is_mapped else None)

    @classmethod
    def of(cls, stack: StackConfig, vector: VectorSpec | None) -> Self:
        """The keys of a tower."""
        keys = cls(**towers.vision_keys(stack))
        return replace(keys, projection_dim=vector.d_output) if vector and vector.d_output else keys


@dataclass(frozen=True, kw_only=True)
class ClipKeys(towers.PairKeys):
    """The keys of both; the width they are compared at is said once."""

    text_config: ClipTextKeys = ClipTextKeys()
    vision_config: ClipVisionKeys = ClipVisionKeys()
    projection_dim: Count = 512

    @property
    def towers(self) -> tuple[ClipTextKeys, ClipVisionKeys]:
        """The keys of each, with that width."""
        return (
            replace(self.text_config, projection_dim=self.projection_dim),
            replace(self.vision_config, projection_dim=self.projection_dim),
        )

    @classmethod
    def of(cls, vision_config: towers.VisionKeys, **more: Any) -> Self:
        """The keys of a pair."""
        keys = super().of(vision_config, **more)
        return replace(keys, projection_dim=keys.vision_config.projection_dim)


def _is_mapped(weights: Weights, name: str) -> bool:
    """Whether a vector is mapped: as the class of transformers says or, where none is named, as is stored."""
    if weights.architecture is None:
        return name in weights
    return weights.architecture == "CLIPModel" or weights.architecture.endswith("WithProjection")


_KIND = towers.Kind(
    key="clip",
    label="CLIP",
    classes="CLIP",
    pair=ClipKeys,
    text=ClipTextKeys,
    vision=ClipVisionKeys,
    with_projection=True,
    rows=(
        row("vision_model.pre_layrnorm.*", "vision.embedding.norm.*"),
        row("vision_model.post_layernorm.*", "vectors.vision.norm.*"),
        row("text_projection.weight", "vectors.text.projection.weight"),
        row("visual_projection.weight", "vectors.vision.projection.weight"),
        row("logit_scale", "vectors.scale", conversion=FIRST_ROW),
    ),
)
FAMILY, TEXT, VISION = _KIND.family, _KIND.text_family, _KIND.vision_family
