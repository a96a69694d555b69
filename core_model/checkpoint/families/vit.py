"""ViT (Dosovitskiy et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families import vision
from core_model.checkpoint.families.family import Family, Foreign, Row, Weights
from core_model.checkpoint.families.fields import Count
from core_model.config import ModelConfig, StackConfig


@dataclass(frozen=True, kw_only=True)
class VitKeys(vision.VisionKeys):
    """ViT's own keys beside those all have."""

    intermediate_size: Count
    qkv_bias: bool = True

    def encoder(self, n_class_tokens: int = 1) -> StackConfig:
        """The stack they describe."""
        feed_forward = vision.feed_forward(self, self.intermediate_size)
        patches = self.patches(n_class_tokens=n_class_tokens)
        return vision.encoder(self, patches, vision.layer(self, feed_forward, bias=self.qkv_bias))


def _read(keys: VitKeys, weights: Weights) -> ModelConfig:
    return ModelConfig(encoder=keys.encoder(), head=vision.classifier(FAMILY, keys, weights))


def write(family: Family, config: ModelConfig) -> Foreign:
    """The keys of a config, and the class of the family's that has its head."""
    first = config.output_stack.layers[0]
    keys = VitKeys(
        **vision.common_keys(config),
        intermediate_size=first.feed_forward.d_hidden,
        qkv_bias=first.attention.query_bias,
    )
    return vision.foreign(family, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    return (
        vision.class_token_row(),
        *vision.embedding_rows(),
        *vision.bert_layer_rows(),
        *vision.output_rows(),
    )


def sizes(weights: Weights, n_class_tokens: int = 1) -> Mapping[str, object]:
    """What the shapes of a file tell."""
    return {
        **vision.sizes(weights, n_class_tokens),
        "intermediate_size": weights.size(vision.FIRST_MAP, 0),
        "qkv_bias": "encoder.layer.0.attention.attention.query.bias" in weights,
    }


FAMILY = Family(
    key="vit",
    label="ViT",
    model_types=("vit",),
    architectures={
        "ViTModel": None,
        "ViTForImageClassification": "image_classes",
        "ViTForMaskedImageModeling": None,
    },
    keys=VitKeys,
    read=_read,
    write=lambda config: write(FAMILY, config),
    sizes=sizes,
    places={**vision.PLACES, "d_hidden": "intermediate_size"},
    names=vision.name_table(_rows, "vit", r"decoder\.0\..*"),
    markers=(r"(vit\.)?embeddings\.cls_token", vision.QUERY, r"(vit\.)?encoder\.layer\.0\.intermediate\.dense\.weight"),
    fit=lambda weights: "embeddings.position_embeddings" in weights,
)
