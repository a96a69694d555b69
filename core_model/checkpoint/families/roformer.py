"""RoFormer (Su et al. 2021): BERT with rotary positions in the paper's own layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import (
    ANSWER_SPAN,
    BERT_MASKED,
    TOKEN_CLASSES,
    EncoderHeads,
    HeadForm,
)
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count
from core_model.config import ModelConfig, RotaryPositions, StackConfig
from core_model.errors import ConfigError

_HEADS = EncoderHeads(
    table=encoders.TABLE,
    forms={
        "masked_language_model": BERT_MASKED,
        "sequence_classes": HeadForm(transform="classifier.dense", output="classifier.out_proj", pooling="first"),
        "token_classes": TOKEN_CLASSES,
        "answer_span": ANSWER_SPAN,
    },
)


@dataclass(frozen=True, kw_only=True)
class RoformerKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    embedding_size: Count | None = None
    rotary_value: bool = False


def _read(keys: RoformerKeys, weights: Weights) -> ModelConfig:
    head_size = encoders.require_encoder(keys)
    if keys.rotary_value:
        raise ConfigError("rotary_value is true in config.json: rotated values are not supported")
    d_embedding = keys.embedding_size or keys.hidden_size
    rotary = RotaryPositions(n_rotated=head_size, layout="interleaved")
    encoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=encoders.typed_embedding(keys, d_embedding),
        layers=(encoders.post_norm_layer(keys, rotary),) * keys.num_hidden_layers,
    )
    head = _HEADS.read(FAMILY, keys, weights, d_model=keys.hidden_size, norm=keys.norm, d_embedding=d_embedding)
    return ModelConfig(encoder=encoder, head=head, special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    keys = RoformerKeys(**encoders.common_keys(config), embedding_size=config.output_stack.tokens.d_embedding)
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
    key="roformer",
    label="RoFormer",
    model_types=("roformer",),
    architectures=encoders.architectures("RoFormer"),
    keys=RoformerKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places=encoders.PLACES,
    names=NameTable(
        rows=_rows,
        prefixes=("roformer.",),
        roots=_HEADS.roots,
        spellings=encoders.OLD_SPELLINGS,
        buffers=(*encoders.BUFFERS, r"encoder\.embed_positions\.weight"),
        unused=_HEADS.unused,
    ),
    markers=(r"roformer\.embeddings\.word_embeddings\.weight",),
)
