"""mBART and mBART-50 (Liu et al. 2020, Tang et al. 2020): BART with its norms before the sublayers."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families import seq2seq
from core_model.checkpoint.families.family import Family, Foreign, Weights
from core_model.checkpoint.families.fields import TokenId
from core_model.config import ModelConfig

_ANATOMY = seq2seq.Anatomy(pre_norm=True, embedding_norm=True, positions=seq2seq.learned_positions)


@dataclass(frozen=True, kw_only=True)
class MBartKeys(seq2seq.Seq2SeqKeys):
    """The keys of config.json that decide what is computed. Without a start token a target starts with its language."""

    bos_token_id: TokenId = 0
    eos_token_id: TokenId = 2
    pad_token_id: TokenId = 1


def _read(keys: MBartKeys, weights: Weights) -> ModelConfig:
    return _ANATOMY.read(FAMILY, keys, weights)


def _write(config: ModelConfig) -> Foreign:
    return seq2seq.foreign(FAMILY, MBartKeys(**seq2seq.common_keys(config)), config)


FAMILY = Family(
    key="mbart",
    label="mBART",
    model_types=("mbart",),
    architectures={
        **seq2seq.architectures("MBart"),
        "MBartForSequenceClassification": None,  # it reads at the end token, which the language follows
        "MBartForQuestionAnswering": "answer_span",
    },
    keys=MBartKeys,
    read=_read,
    write=_write,
    sizes=seq2seq.sizes,
    places=seq2seq.PLACES,
    names=seq2seq.name_table(_ANATOMY),
    aliases=seq2seq.ALIASES,
    layer_counts=("decoder_layers",),
)
