"""PEGASUS (Zhang et al. 2020): BART with its norms before the sublayers, and sines and cosines for positions."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.fields import TokenId
from core_model.checkpoint.families.seq2seq import Anatomy, Seq2SeqKeys, architectures, seq2seq_family
from core_model.config import SinusoidalPositions


@dataclass(frozen=True, kw_only=True)
class PegasusKeys(Seq2SeqKeys):
    """The keys of config.json that decide what is computed."""

    eos_token_id: TokenId = 1
    pad_token_id: TokenId = 0
    decoder_start_token_id: TokenId = 0


FAMILY = seq2seq_family(
    Anatomy(pre_norm=True, positions=lambda keys: SinusoidalPositions(layout="halves")),
    PegasusKeys,
    key="pegasus",
    label="PEGASUS",
    architectures=architectures("Pegasus"),
)
