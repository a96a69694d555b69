"""ViT (Dosovitskiy et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families import vision
from core_model.checkpoint.families.family import Family, Foreign, Row, Weights
from core_model.checkpoint.families.fields import Count
from core_model.config import LearnedPositions, ModelConfig, StackConfig


@dataclass(frozen=True, kw_only=True)
class VitKeys(vision.VisionKeys):
    """ViT's own keys beside those all have."""

    intermediate_size: Count
    qkv_bias: bool = True


def _read(keys: VitKeys, weights: Weights) -> ModelConfig:
    patches = vision.patches(keys)
    layer = vision.layer(keys, vision.feed_forward(keys, keys.intermediate_size), bias=keys.qkv_bias)
    encoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=patches,
        position=LearnedPositions(max_length=patches.n_positions),
        layers=(layer,) * keys.num_hidden_layers,
        final_norm=keys.norm,
    )
    return ModelConfig(encoder=encoder, head=vision.classifier(FAMILY, keys, weights))


def _write(config: ModelConfig) -> Foreign:
    first = config.output_stack.layers[0]
    keys = VitKeys(
        **vision.common_keys(config),
        intermediate_size=first.feed_forward.d_hidden,
        qkv_bias=first.attention.query_bias,
    )
    return vision.foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    return (
        vision.class_token_row(),
        *vision.embedding_rows(),
        *vision.bert_layer_rows(),
        *vision.output_rows(),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        **vision.sizes(weights),
        "intermediate_size": weights.size("encoder.layer.0.intermediate.dense.weight", 0),
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
    write=_write,
    sizes=_sizes,
    places={**vision.PLACES, "d_hidden": "intermediate_size"},
    names=vision.name_table(_rows, "vit", r"decoder\.0\..*"),
    markers=(r"(vit\.)?embeddings\.cls_token", vision.QUERY, r"(vit\.)?encoder\.layer\.0\.intermediate\.dense\.weight"),
    fit=lambda weights: "embeddings.position_embeddings" in weights,
)
