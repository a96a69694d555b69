"""RoBERTa (Liu et al. 2019), XLM-RoBERTa and CamemBERT: BERT with fairseq's positions and heads."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import (
    ANSWER_SPAN,
    FAIRSEQ_MASKED,
    FAIRSEQ_SEQUENCE,
    TOKEN_CLASSES,
    EncoderHeads,
)
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights
from core_model.checkpoint.families.fields import TokenId
from core_model.config import ModelConfig, StackConfig

_HEADS = EncoderHeads(
    table=encoders.TABLE,
    forms={
        "masked_language_model": FAIRSEQ_MASKED,
        "sequence_classes": FAIRSEQ_SEQUENCE,
        "token_classes": TOKEN_CLASSES,
        "answer_span": ANSWER_SPAN,
    },
)


@dataclass(frozen=True, kw_only=True)
class RobertaKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    pad_token_id: TokenId = 1


def _read(keys: RobertaKeys, weights: Weights) -> ModelConfig:
    encoders.require_encoder(keys)
    encoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=encoders.typed_embedding(keys),
        position=encoders.positions_after_padding(keys.max_position_embeddings, keys.pad_token_id),
        layers=(encoders.post_norm_layer(keys),) * keys.num_hidden_layers,
    )
    head = _HEADS.read(FAMILY, keys, weights, d_model=keys.hidden_size, norm=keys.norm)
    return ModelConfig(encoder=encoder, head=head, special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    return encoders.foreign(FAMILY, RobertaKeys(**encoders.common_keys(config)), config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    return (
        *_HEADS.rows(config.head),
        *encoders.embedding_rows(),
        *encoders.attention_rows(),
        *encoders.feed_forward_rows(),
    )


FAMILY = Family(
    key="roberta",
    label="RoBERTa",
    model_types=("roberta", "xlm-roberta", "camembert"),
    architectures={
        **encoders.architectures("Roberta"),
        **encoders.architectures("XLMRoberta"),
        **encoders.architectures("Camembert"),
    },
    keys=RobertaKeys,
    read=_read,
    write=_write,
    sizes=encoders.sizes,
    places=encoders.PLACES,
    names=NameTable(
        rows=_rows,
        prefixes=("roberta.",),
        roots=_HEADS.roots,
        spellings=encoders.OLD_SPELLINGS,
        buffers=encoders.BUFFERS,
        unused=_HEADS.unused,
    ),
    markers=(r"roberta\.embeddings\.word_embeddings\.weight",),
)
