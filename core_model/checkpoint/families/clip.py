"""CLIP (Radford et al. 2021): a causal text tower and a vision tower, together or one of them alone.

The vision tower's hidden states are those before its last norm, which only the compared vector goes through.
"""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families import towers
from core_model.checkpoint.families.family import Family, NameTable, Weights
from core_model.checkpoint.families.fields import Count, Positive, TokenId, special_tokens
from core_model.config import ModelConfig, NormSpec, SpecialTokens, StackConfig

_UNUSED = (r"(text|visual)_projection\..*", r"logit_scale", r"(vision_model\.)?post_layernorm\..*")


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

    @property
    def tower(self) -> StackConfig:
        """The text tower."""
        return self.stack(self.tokens, self.max_position_embeddings, causal=True)

    @property
    def special(self) -> SpecialTokens:
        """The ids with a role."""
        return special_tokens(begin=self.bos_token_id, end=self.eos_token_id, padding=self.pad_token_id)


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

    @property
    def tower(self) -> StackConfig:
        """The vision tower."""
        patches = self.patches(bias=False, norm=NormSpec(eps=self.layer_norm_eps))
        return self.stack(patches, patches.n_positions, has_final_norm=False)


@dataclass(frozen=True, kw_only=True)
class ClipKeys:
    """The keys of both."""

    text_config: ClipTextKeys = ClipTextKeys()
    vision_config: ClipVisionKeys = ClipVisionKeys()


def _read(keys: ClipKeys, weights: Weights) -> ModelConfig:
    return ModelConfig(text=keys.text_config.tower, vision=keys.vision_config.tower, special=keys.text_config.special)


def _read_text(keys: ClipTextKeys, weights: Weights) -> ModelConfig:
    return ModelConfig(text=keys.tower, special=keys.special)


def _read_vision(keys: ClipVisionKeys, weights: Weights) -> ModelConfig:
    return ModelConfig(vision=keys.tower)


FAMILY = Family(
    key="clip",
    label="CLIP",
    model_types=("clip",),
    architectures={"CLIPModel": None},
    keys=ClipKeys,
    read=_read,
    write=towers.write,
    sizes=lambda weights: {},
    places=towers.PAIR_PLACES,
    names=NameTable(
        rows=lambda config: (*towers.text_rows("text_model."), *towers.vision_rows("vision_model.")),
        buffers=towers.BUFFERS,
        unused=_UNUSED,
    ),
    layer_counts=("vision_config.num_hidden_layers",),
)
TEXT = Family(
    key="clip_text",
    label="CLIP's text tower",
    model_types=("clip_text_model",),
    architectures={"CLIPTextModel": None, "CLIPTextModelWithProjection": None},
    keys=ClipTextKeys,
    read=_read_text,
    write=towers.write,
    sizes=towers.text_sizes,
    places=towers.TEXT_PLACES,
    names=NameTable(
        rows=lambda config: towers.text_rows(""),
        prefixes=("text_model.",),
        roots=("text_projection.",),
        buffers=towers.BUFFERS,
        unused=_UNUSED,
    ),
)
VISION = Family(
    key="clip_vision",
    label="CLIP's vision tower",
    model_types=("clip_vision_model",),
    architectures={"CLIPVisionModel": None, "CLIPVisionModelWithProjection": None},
    keys=ClipVisionKeys,
    read=_read_vision,
    write=towers.write,
    sizes=towers.vision_sizes,
    places=towers.PLACES,
    names=NameTable(
        rows=lambda config: towers.vision_rows(""),
        prefixes=("vision_model.",),
        roots=("visual_projection.",),
        buffers=towers.BUFFERS,
        unused=_UNUSED,
    ),
)
