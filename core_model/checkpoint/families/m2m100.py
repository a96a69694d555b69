"""M2M-100 and NLLB (Fan et al. 2021, NLLB team 2022): norms before the sublayers, fairseq's sines and cosines."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.fields import Rate, TokenId
from core_model.checkpoint.families.seq2seq import Anatomy, Seq2SeqKeys, architectures, seq2seq_family
from core_model.config import SinusoidalPositions


@dataclass(frozen=True, kw_only=True)
class M2m100Keys(Seq2SeqKeys):
    """The keys of config.json that decide what is computed."""

    activation_function: str = "relu"
    scale_embedding: bool = True
    attention_dropout: Rate = 0.1
    bos_token_id: TokenId = 0
    eos_token_id: TokenId = 2
    pad_token_id: TokenId = 1
    decoder_start_token_id: TokenId = 2


def _positions(keys: M2m100Keys) -> SinusoidalPositions:
    """The first token stands after the padding token's id."""
    padding = keys.pad_token_id if isinstance(keys.pad_token_id, int) else 1
    return SinusoidalPositions(layout="halves", endpoint=True, offset=padding + 1)


FAMILY = seq2seq_family(
    Anatomy(pre_norm=True, positions=_positions, logits_bias=False),
    M2m100Keys,
    key="m2m100",
    label="M2M-100",
    model_types=("m2m_100",),
    architectures=architectures("M2M100"),
)
