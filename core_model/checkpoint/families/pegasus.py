"""PEGASUS (Zhang et al. 2020): BART with its norms before the sublayers, and sines and cosines for positions."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families import seq2seq
from core_model.checkpoint.families.family import Family, Foreign, Weights
from core_model.checkpoint.families.fields import TokenId
from core_model.config import ModelConfig, SinusoidalPositions

_ANATOMY = seq2seq.Anatomy(
    pre_norm=True, embedding_norm=False, positions=lambda keys: SinusoidalPositions(layout="halves")
)


@dataclass(frozen=True, kw_only=True)
class PegasusKeys(seq2seq.Seq2SeqKeys):
    """The keys of config.json that decide what is computed."""

    eos_token_id: TokenId = 1
    pad_token_id: TokenId = 0
    decoder_start_token_id: TokenId = 0


def _read(keys: PegasusKeys, weights: Weights) -> ModelConfig:
    return _ANATOMY.read(FAMILY, keys, weights)


def _write(config: ModelConfig) -> Foreign:
    return seq2seq.foreign(FAMILY, PegasusKeys(**seq2seq.common_keys(config)), config)


FAMILY = Family(
    key="pegasus",
    label="PEGASUS",
    model_types=("pegasus",),
    architectures=seq2seq.architectures("Pegasus"),
    keys=PegasusKeys,
    read=_read,
    write=_write,
    sizes=seq2seq.sizes,
    places=seq2seq.PLACES,
    names=seq2seq.name_table(_ANATOMY, fixed_positions=True),
    aliases=seq2seq.ALIASES,
    layer_counts=("decoder_layers",),
)
