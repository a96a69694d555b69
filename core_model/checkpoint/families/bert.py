"""BERT (Devlin et al. 2019), as transformers and the first TensorFlow conversions store it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import (
    ANSWER_SPAN,
    BERT_MASKED,
    TOKEN_CLASSES,
    EncoderHeads,
    HeadForm,
)
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights
from core_model.config import HeadSpec, LearnedPositions, ModelConfig, StackConfig
from core_model.errors import ConfigError
from core_model.wording import shown

_NEXT_SENTENCE = ("sentence B follows A", "sentence B is random")
_POOLED = HeadForm(transform="pooler.dense", activation="tanh", output="classifier", pooling="first")
_HEADS = EncoderHeads(
    table=encoders.TABLE,
    forms={
        "masked_language_model": BERT_MASKED,
        "sequence_classes": _POOLED,
        "token_classes": TOKEN_CLASSES,
        "answer_span": ANSWER_SPAN,
    },
)
_NEXT_SENTENCE_HEADS = replace(_HEADS, forms={"sequence_classes": replace(_POOLED, output="cls.seq_relationship")})


@dataclass(frozen=True, kw_only=True)
class BertKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    position_embedding_type: str | None = "absolute"


def _read(keys: BertKeys, weights: Weights) -> ModelConfig:
    encoders.require_encoder(keys)
    if keys.position_embedding_type not in (None, "absolute"):
        raise ConfigError(
            f"position_embedding_type is {shown(repr(keys.position_embedding_type))} in config.json: "
            "only BERT's own 'absolute' positions are supported"
        )
    encoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=encoders.typed_embedding(keys),
        position=LearnedPositions(max_length=keys.max_position_embeddings),
        layers=(encoders.post_norm_layer(keys),) * keys.num_hidden_layers,
    )
    return ModelConfig(encoder=encoder, head=_read_head(keys, weights), special=keys.special)


def _read_head(keys: BertKeys, weights: Weights) -> HeadSpec | None:
    head = _HEADS.read(FAMILY, keys, weights, d_model=keys.hidden_size, norm=keys.norm)
    if head is not None and weights.architecture == "BertForNextSentencePrediction":
        return replace(head, n_outputs=2, labels=_NEXT_SENTENCE)
    return head


def _write(config: ModelConfig) -> Foreign:
    foreign = encoders.foreign(FAMILY, BertKeys(**encoders.common_keys(config)), config)
    if config.head is not None and config.head.labels == _NEXT_SENTENCE:
        return replace(foreign, architecture="BertForNextSentencePrediction")
    return foreign


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    is_next_sentence = config.head is not None and config.head.labels == _NEXT_SENTENCE
    return (
        *(_NEXT_SENTENCE_HEADS if is_next_sentence else _HEADS).rows(config.head),
        *encoders.embedding_rows(),
        *encoders.attention_rows(),
        *encoders.feed_forward_rows(),
    )


FAMILY = Family(
    key="bert",
    label="BERT",
    model_types=("bert",),
    architectures={
        **encoders.architectures("Bert"),
        "BertForPreTraining": "masked_language_model",
        "BertForMultipleChoice": "sequence_classes",
        "BertForNextSentencePrediction": "sequence_classes",
    },
    keys=BertKeys,
    read=_read,
    write=_write,
    sizes=encoders.sizes,
    places=encoders.PLACES,
    names=NameTable(
        rows=_rows,
        prefixes=("bert.",),
        roots=("cls.", "classifier.", "qa_outputs."),
        spellings=encoders.OLD_SPELLINGS,
        buffers=encoders.BUFFERS,
        unused=(*_HEADS.unused, *_NEXT_SENTENCE_HEADS.unused),
    ),
    markers=(r"bert\.embeddings\.word_embeddings\.weight", r"bert\.encoder\.layer\.0\.attention\.self\.query\.weight"),
)
