"""SigLIP (Zhai et al. 2023): a text tower that sees both ways and a vision tower that attention pools, together or one
of them alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from core_model.checkpoint.families import towers
from core_model.checkpoint.families.conversion import WRAPPED
from core_model.checkpoint.families.family import Weights, row
from core_model.checkpoint.families.fields import Count, Positive, TokenId, special_tokens
from core_model.config import AttentionPooling, SpecialTokens, StackConfig, VectorSpec, multi_head


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
    projection_size: Count | None = None

    @property
    def special(self) -> SpecialTokens:
        """The ids with a role, those that the vocabulary has: the library's own defaults are CLIP's."""
        ids = (self.bos_token_id, self.eos_token_id, self.pad_token_id)
        begin, end, padding = (i if isinstance(i, int) and i < self.vocab_size else None for i in ids)
        return special_tokens(begin=begin, end=end, padding=padding)

    def tower(self) -> StackConfig:
        """One without a mask."""
        return self.stack(self.tokens, self.max_position_embeddings)

    def vector(self, weights: Weights) -> VectorSpec:
        """The last token's hidden state, mapped: of a text padded to its full length, as in training."""
        return VectorSpec(pooling="last", d_output=self.projection_size or self.hidden_size, bias=True, padded=True)

    @classmethod
    def of(cls, stack: StackConfig, vector: VectorSpec | None, special: SpecialTokens) -> Self:
        """The keys of a tower."""
        return cls(**towers.text_keys(stack, special), projection_size=vector and vector.d_output)


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
    vision_use_head: bool = True

    def tower(self) -> StackConfig:
        """One of patches alone."""
        patches = self.patches(n_class_tokens=0, has_class_token=False)
        return self.stack(patches, patches.n_positions)

    def vector(self, weights: Weights) -> VectorSpec | None:
        """What attention gathers from all patches."""
        if not self.vision_use_head:
            return None
        pooling = AttentionPooling(
            attention=multi_head(self.hidden_size, self.num_attention_heads),
            norm=self.norm,
            feed_forward=self.feed_forward,
        )
        return VectorSpec(pooling="attention", attention=pooling)

    @classmethod
    def of(cls, stack: StackConfig, vector: VectorSpec | None) -> Self:
        """The keys of a tower."""
        return replace(cls(**towers.vision_keys(stack)), vision_use_head=vector is not None)


@dataclass(frozen=True, kw_only=True)
class SiglipKeys(towers.PairKeys):
    """The keys of both."""

    text_config: SiglipTextKeys = SiglipTextKeys()
    vision_config: SiglipVisionKeys = SiglipVisionKeys()


_POOL, _THEIR_POOL = "vectors.vision.pool", "vision_model.head"
_KIND = towers.Kind(
    key="siglip",
    label="SigLIP",
    classes="Siglip",
    pair=SiglipKeys,
    text=SiglipTextKeys,
    vision=SiglipVisionKeys,
    bias=True,
    rows=(
        row("text_model.head.*", "vectors.text.projection.*"),
        row(f"{_THEIR_POOL}.probe", f"{_POOL}.probe", conversion=WRAPPED),
        *(
            row(
                f"{_THEIR_POOL}.attention.in_proj_{kind}",
                *(f"{_POOL}.attention.{part}.{kind}" for part in ("query", "key", "value")),
            )
            for kind in ("weight", "bias")
        ),
        row(f"{_THEIR_POOL}.attention.out_proj.*", f"{_POOL}.attention.output.*"),
        row(f"{_THEIR_POOL}.layernorm.*", f"{_POOL}.norm.*"),
        row(f"{_THEIR_POOL}.mlp.fc1.*", f"{_POOL}.feed_forward.input.*"),
        row(f"{_THEIR_POOL}.mlp.fc2.*", f"{_POOL}.feed_forward.output.*"),
        row("logit_scale", "vectors.scale"),
        row("logit_bias", "vectors.bias"),
    ),
)
FAMILY, TEXT, VISION = _KIND.family, _KIND.text_family, _KIND.vision_family
