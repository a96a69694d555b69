"""SigLIP (Zhai et al. 2023): a text tower that sees both ways and a vision tower, together or one of them alone."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families import towers
from core_model.checkpoint.families.family import Family, NameTable, Weights
from core_model.checkpoint.families.fields import Count, Positive, TokenId, special_tokens
from core_model.config import ModelConfig, SpecialTokens, StackConfig

_UNUSED = (r"((text|vision)_model\.)?head\..*", r"logit_(scale|bias)", r"classifier\..*")


@dataclass(frozen=True, kw_only=True)
class SiglipTextKeys(towers.TextKeys):
    """The keys of the text tower; what a config leaves out is that of the base model, as in transformers."""

    hidden_size: Count = 768
    intermediate_size: Count = 3072
    num_hidden_layers: Count = 12
    num_attention_heads: Count = 12
    hidden_act: str = "gelu_pytorch_tanh"
    layer_norm_eps: Positive = 1e-6
    vocab_size: Count = 32000
    max_position_embeddings: Count = 64
    bos_token_id: TokenId = 49406
    eos_token_id: TokenId = 49407
    pad_token_id: TokenId = 1

    @property
    def tower(self) -> StackConfig:
        """The text tower."""
        return self.stack(self.tokens, self.max_position_embeddings)

    @property
    def special(self) -> SpecialTokens:
        """The ids with a role, those that the vocabulary has: the library's own defaults are CLIP's."""
        ids = (self.bos_token_id, self.eos_token_id, self.pad_token_id)
        begin, end, padding = (i if isinstance(i, int) and i < self.vocab_size else None for i in ids)
        return special_tokens(begin=begin, end=end, padding=padding)


@dataclass(frozen=True, kw_only=True)
class SiglipVisionKeys(towers.VisionKeys):
    """The keys of the vision tower; what a config leaves out is that of the base model, as in transformers."""

    hidden_size: Count = 768
    intermediate_size: Count = 3072
    num_hidden_layers: Count = 12
    num_attention_heads: Count = 12
    hidden_act: str = "gelu_pytorch_tanh"
    layer_norm_eps: Positive = 1e-6
    image_size: Count | list[Count] = 224
    patch_size: Count | list[Count] = 16

    @property
    def tower(self) -> StackConfig:
        """The vision tower."""
        patches = self.patches(n_class_tokens=0)
        return self.stack(patches, patches.n_positions)


@dataclass(frozen=True, kw_only=True)
class SiglipKeys:
    """The keys of both."""

    text_config: SiglipTextKeys = SiglipTextKeys()
    vision_config: SiglipVisionKeys = SiglipVisionKeys()


def _read(keys: SiglipKeys, weights: Weights) -> ModelConfig:
    return ModelConfig(text=keys.text_config.tower, vision=keys.vision_config.tower, special=keys.text_config.special)


def _read_text(keys: SiglipTextKeys, weights: Weights) -> ModelConfig:
    return ModelConfig(text=keys.tower, special=keys.special)


def _read_vision(keys: SiglipVisionKeys, weights: Weights) -> ModelConfig:
    return ModelConfig(vision=keys.tower)


FAMILY = Family(
    key="siglip",
    label="SigLIP",
    model_types=("siglip",),
    architectures={"SiglipModel": None},
    keys=SiglipKeys,
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
    key="siglip_text",
    label="SigLIP's text tower",
    model_types=("siglip_text_model",),
    architectures={"SiglipTextModel": None},
    keys=SiglipTextKeys,
    read=_read_text,
    write=towers.write,
    sizes=towers.text_sizes,
    places=towers.TEXT_PLACES,
    names=NameTable(
        rows=lambda config: towers.text_rows(""),
        prefixes=("text_model.",),
        buffers=towers.BUFFERS,
        unused=_UNUSED,
    ),
)
VISION = Family(
    key="siglip_vision",
    label="SigLIP's vision tower",
    model_types=("siglip_vision_model",),
    architectures={"SiglipVisionModel": None},
    keys=SiglipVisionKeys,
    read=_read_vision,
    write=towers.write,
    sizes=towers.vision_sizes,
    places=towers.PLACES,
    names=NameTable(
        rows=lambda config: towers.vision_rows(""),
        prefixes=("vision_model.",),
        buffers=towers.BUFFERS,
        unused=_UNUSED,
    ),
)
