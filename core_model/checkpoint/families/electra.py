"""ELECTRA (Clark et al. 2020): BERT over a narrow token table, as generator or as the discriminator trained with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import ANSWER_SPAN, TOKEN_CLASSES, EncoderHeads, HeadForm
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count
from core_model.config import LearnedPositions, ModelConfig, StackConfig

_HEADS = EncoderHeads(
    table=encoders.TABLE,
    forms={
        "masked_language_model": HeadForm(
            transform="generator_predictions.dense",
            activation="gelu",
            norm="generator_predictions.LayerNorm",
            output="generator_lm_head",
        ),
        "replaced_tokens": HeadForm(
            transform="discriminator_predictions.dense", output="discriminator_predictions.dense_prediction"
        ),
        "sequence_classes": HeadForm(
            transform="classifier.dense", activation="gelu", output="classifier.out_proj", pooling="first"
        ),
        "token_classes": TOKEN_CLASSES,
        "answer_span": ANSWER_SPAN,
    },
)


@dataclass(frozen=True, kw_only=True)
class ElectraKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    embedding_size: Count = 128


def _read(keys: ElectraKeys, weights: Weights) -> ModelConfig:
    encoders.require_encoder(keys)
    encoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=encoders.typed_embedding(keys, keys.embedding_size),
        position=LearnedPositions(max_length=keys.max_position_embeddings),
        layers=(encoders.post_norm_layer(keys),) * keys.num_hidden_layers,
    )
    head = _HEADS.read(FAMILY, keys, weights, d_model=keys.hidden_size, norm=keys.norm, d_embedding=keys.embedding_size)
    return ModelConfig(encoder=encoder, head=head, special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    keys = ElectraKeys(**encoders.common_keys(config), embedding_size=config.output_stack.tokens.d_embedding)
    return encoders.foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    return (
        *_HEADS.rows(config.head),
        *encoders.embedding_rows(),
        row("embeddings_project.*", "encoder.embedding.projection.*"),
        *encoders.attention_rows(),
        *encoders.feed_forward_rows(),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {**encoders.sizes(weights), "embedding_size": weights.size(encoders.TABLE, 1)}


FAMILY = Family(
    key="electra",
    label="ELECTRA",
    model_types=("electra",),
    architectures={**encoders.architectures("Electra"), "ElectraForPreTraining": "replaced_tokens"},
    keys=ElectraKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places=encoders.PLACES,
    names=NameTable(
        rows=_rows,
        prefixes=("electra.",),
        roots=_HEADS.roots,
        spellings=encoders.OLD_SPELLINGS,
        buffers=encoders.BUFFERS,
        unused=_HEADS.unused,
    ),
    markers=(r"electra\.embeddings\.word_embeddings\.weight",),
)
