"""DeiT (Touvron et al. 2021): ViT with a second class token, trained by distillation."""

from __future__ import annotations

from dataclasses import replace

from core_model.checkpoint.families import vision, vit
from core_model.checkpoint.families.conversion import Averaged, Rows
from core_model.checkpoint.families.family import Family, Foreign, Row, Weights
from core_model.config import HeadSpec, ModelConfig

_TEACHER = "DeiTForImageClassificationWithTeacher"
_TWO_HEADS = ("cls_classifier", "distillation_classifier")


def _read(keys: vit.VitKeys, weights: Weights) -> ModelConfig:
    return ModelConfig(encoder=keys.encoder(n_class_tokens=2), head=_head(keys, weights))


def _head(keys: vit.VitKeys, weights: Weights) -> HeadSpec | None:
    """One classifier, or the mean of one for each class token."""
    if weights.architecture == _TEACHER or (weights.architecture is None and f"{_TWO_HEADS[1]}.weight" in weights):
        head = vision.classifier(FAMILY, keys, replace(weights, architecture=_TEACHER), name=_TWO_HEADS[0])
        assert head is not None
        return replace(head, pooling="first_two")
    return vision.classifier(FAMILY, keys, weights)


def _write(config: ModelConfig) -> Foreign:
    written = vit.write(FAMILY, config)
    of_both = config.head is not None and config.head.pooling == "first_two"
    return replace(written, architecture=_TEACHER) if of_both else written


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
    keys=vit.VitKeys,
    read=_read,
    write=_write,
    sizes=lambda weights: vit.sizes(weights, n_class_tokens=2),
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
