"""DeiT (Touvron et al. 2021): ViT with a second class token, trained by distillation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core_model.checkpoint.families import vision
from core_model.checkpoint.families.conversion import Averaged, Rows
from core_model.checkpoint.families.family import Family, Foreign, Row, Weights
from core_model.checkpoint.families.fields import Count
from core_model.config import HeadSpec, LearnedPositions, ModelConfig, StackConfig

_TEACHER = "DeiTForImageClassificationWithTeacher"
_TWO_HEADS = ("cls_classifier", "distillation_classifier")


@dataclass(frozen=True, kw_only=True)
class DeitKeys(vision.VisionKeys):
    """DeiT's own keys beside those all have."""

    intermediate_size: Count
    qkv_bias: bool = True


def _read(keys: DeitKeys, weights: Weights) -> ModelConfig:
    patches = vision.patches(keys, n_class_tokens=2)
    layer = vision.layer(keys, vision.feed_forward(keys, keys.intermediate_size), bias=keys.qkv_bias)
    encoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=patches,
        position=LearnedPositions(max_length=patches.n_positions),
        layers=(layer,) * keys.num_hidden_layers,
        final_norm=keys.norm,
    )
    return ModelConfig(encoder=encoder, head=_head(keys, weights))


def _head(keys: DeitKeys, weights: Weights) -> HeadSpec | None:
    """One classifier, or the mean of one for each class token."""
    if weights.architecture == _TEACHER or (weights.architecture is None and f"{_TWO_HEADS[1]}.weight" in weights):
        head = vision.classifier(FAMILY, keys, replace(weights, architecture=_TEACHER), name=_TWO_HEADS[0])
        assert head is not None
        return replace(head, pooling="first_two")
    return vision.classifier(FAMILY, keys, weights)


def _write(config: ModelConfig) -> Foreign:
    first, head = config.output_stack.layers[0], config.head
    keys = DeitKeys(
        **vision.common_keys(config),
        intermediate_size=first.feed_forward.d_hidden,
        qkv_bias=first.attention.query_bias,
    )
    written = vision.foreign(FAMILY, keys, config)
    return replace(written, architecture=_TEACHER) if head and head.pooling == "first_two" else written


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    tokens = ("embeddings.cls_token", "embeddings.distillation_token")
    rows = (
        Row(theirs=tokens, ours=("encoder.embedding.class_tokens",), conversion=Rows(counts=(1, 1))),
        *vision.embedding_rows(),
        *vision.bert_layer_rows(),
    )
    norm, classifier = vision.output_rows()
    if config.head is not None and config.head.pooling == "first_two":
        names = tuple(f"{name}.*" for name in _TWO_HEADS)
        classifier = Row(theirs=names, ours=("head.output.*",), conversion=Averaged())
    return *rows, norm, classifier


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        **vision.sizes(weights, n_before_patches=2),
        "intermediate_size": weights.size("encoder.layer.0.intermediate.dense.weight", 0),
        "qkv_bias": "encoder.layer.0.attention.attention.query.bias" in weights,
    }


FAMILY = Family(
    key="deit",
    label="DeiT",
    model_types=("deit",),
    architectures={
        "DeiTModel": None,
        "DeiTForImageClassification": "image_classes",
        _TEACHER: "image_classes",
        "DeiTForMaskedImageModeling": None,
    },
    keys=DeitKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={**vision.PLACES, "d_hidden": "intermediate_size"},
    names=vision.name_table(
        _rows,
        "deit",
        r"(cls|distillation)_classifier\..*",
        r"decoder\.0\..*",
        roots=tuple(f"{name}." for name in _TWO_HEADS),
    ),
    markers=(r"(deit\.)?embeddings\.distillation_token", vision.QUERY),
)
