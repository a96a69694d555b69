"""Marian, as Opus-MT trains it (Junczys-Dowmunt et al. 2018, Tiedemann and Thottingal 2020): the article's transformer.

Sines before cosines, tables shared by source and target or one each.
"""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families import seq2seq
from core_model.checkpoint.families.family import Family, Foreign, Weights
from core_model.checkpoint.families.fields import TokenId
from core_model.config import ModelConfig, SinusoidalPositions

_ANATOMY = seq2seq.Anatomy(
    pre_norm=False, embedding_norm=False, positions=lambda keys: SinusoidalPositions(layout="halves")
)


@dataclass(frozen=True, kw_only=True)
class MarianKeys(seq2seq.Seq2SeqKeys):
    """The keys of config.json that decide what is computed. The decoder starts with the padding token."""

    share_encoder_decoder_embeddings: bool = True
    eos_token_id: TokenId = 0
    pad_token_id: TokenId = 58100
    decoder_start_token_id: TokenId = 58100


def _read(keys: MarianKeys, weights: Weights) -> ModelConfig:
    return _ANATOMY.read(FAMILY, keys, weights, shared=keys.share_encoder_decoder_embeddings)


def _write(config: ModelConfig) -> Foreign:
    keys = MarianKeys(
        **seq2seq.common_keys(config),
        decoder_vocab_size=config.output_stack.tokens.vocab_size,
        share_encoder_decoder_embeddings=config.shared_embedding,
    )
    return seq2seq.foreign(FAMILY, keys, config)


FAMILY = Family(
    key="marian",
    label="Marian",
    model_types=("marian",),
    architectures=seq2seq.architectures("Marian", "MTModel"),
    keys=MarianKeys,
    read=_read,
    write=_write,
    sizes=seq2seq.sizes,
    places=seq2seq.PLACES,
    names=seq2seq.name_table(_ANATOMY, fixed_positions=True),
    aliases=seq2seq.ALIASES,
    layer_counts=("decoder_layers",),
)
