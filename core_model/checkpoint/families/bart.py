"""BART (Lewis et al. 2020): the article's transformer with learned positions and a norm of the embeddings."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families import seq2seq
from core_model.checkpoint.families.family import Family, Foreign, Weights
from core_model.checkpoint.families.fields import TokenId
from core_model.config import ModelConfig

_ANATOMY = seq2seq.Anatomy(pre_norm=False, embedding_norm=True, positions=seq2seq.learned_positions)


@dataclass(frozen=True, kw_only=True)
class BartKeys(seq2seq.Seq2SeqKeys):
    """The keys of config.json that decide what is computed."""

    bos_token_id: TokenId = 0
    eos_token_id: TokenId = 2
    pad_token_id: TokenId = 1
    decoder_start_token_id: TokenId = 2


def _read(keys: BartKeys, weights: Weights) -> ModelConfig:
    return _ANATOMY.read(FAMILY, keys, weights)


def _write(config: ModelConfig) -> Foreign:
    return seq2seq.foreign(FAMILY, BartKeys(**seq2seq.common_keys(config)), config)


FAMILY = Family(
    key="bart",
    label="BART",
    model_types=("bart",),
    architectures={
        **seq2seq.architectures("Bart"),
        "BartForSequenceClassification": "sequence_classes",
        "BartForQuestionAnswering": "answer_span",
    },
    keys=BartKeys,
    read=_read,
    write=_write,
    sizes=seq2seq.sizes,
    places=seq2seq.PLACES,
    names=seq2seq.name_table(_ANATOMY),
    aliases=seq2seq.ALIASES,
    layer_counts=("decoder_layers",),
)
