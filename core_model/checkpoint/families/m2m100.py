"""M2M-100 and NLLB (Fan et al. 2021, NLLB team 2022): norms before the sublayers, fairseq's sines and cosines."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families import seq2seq
from core_model.checkpoint.families.family import Family, Foreign, Weights
from core_model.checkpoint.families.fields import TokenId
from core_model.config import ModelConfig, SinusoidalPositions


def _positions(keys: M2m100Keys) -> SinusoidalPositions:
    """The first token stands after the padding token's id."""
    padding = keys.pad_token_id if isinstance(keys.pad_token_id, int) else 1
    return SinusoidalPositions(layout="halves", endpoint=True, offset=padding + 1)


_ANATOMY = seq2seq.Anatomy(pre_norm=True, embedding_norm=False, positions=_positions, logits_bias=False)


@dataclass(frozen=True, kw_only=True)
class M2m100Keys(seq2seq.Seq2SeqKeys):
    """The keys of config.json that decide what is computed."""

    activation_function: str = "relu"
    scale_embedding: bool = True
    bos_token_id: TokenId = 0
    eos_token_id: TokenId = 2
    pad_token_id: TokenId = 1
    decoder_start_token_id: TokenId = 2


def _read(keys: M2m100Keys, weights: Weights) -> ModelConfig:
    return _ANATOMY.read(FAMILY, keys, weights)


def _write(config: ModelConfig) -> Foreign:
    keys = M2m100Keys(**seq2seq.common_keys(config))
    return seq2seq.foreign(FAMILY, keys, config)


FAMILY = Family(
    key="m2m100",
    label="M2M-100",
    model_types=("m2m_100",),
    architectures=seq2seq.architectures("M2M100"),
    keys=M2m100Keys,
    read=_read,
    write=_write,
    sizes=seq2seq.sizes,
    places=seq2seq.PLACES,
    names=seq2seq.name_table(_ANATOMY, fixed_positions=True),
    aliases=seq2seq.ALIASES,
    layer_counts=("decoder_layers",),
)
