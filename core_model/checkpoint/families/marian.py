"""Marian, as Opus-MT trains it (Junczys-Dowmunt et al. 2018, Tiedemann and Thottingal 2020): the article's transformer.

Sines before cosines, tables shared by source and target or one each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families.fields import TokenId
from core_model.checkpoint.families.seq2seq import Anatomy, Seq2SeqKeys, architectures, seq2seq_family
from core_model.config import ModelConfig, SinusoidalPositions


@dataclass(frozen=True, kw_only=True)
class MarianKeys(Seq2SeqKeys):
    """The keys of config.json that decide what is computed. The decoder starts with the padding token."""

    share_encoder_decoder_embeddings: bool = True
    eos_token_id: TokenId = 0
    pad_token_id: TokenId = 58100
    decoder_start_token_id: TokenId = 58100

    @property
    def shares_table(self) -> bool:
        """As the config says."""
        return self.share_encoder_decoder_embeddings


def _further_keys(config: ModelConfig) -> Mapping[str, Any]:
    return {
        "decoder_vocab_size": config.output_stack.tokens.vocab_size,
        "share_encoder_decoder_embeddings": config.shared_embedding,
    }


FAMILY = seq2seq_family(
    Anatomy(pre_norm=False, positions=lambda keys: SinusoidalPositions(layout="halves")),
    MarianKeys,
    _further_keys,
    key="marian",
    label="Marian",
    architectures=architectures("Marian", "MTModel"),
)
