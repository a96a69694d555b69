"""BART (Lewis et al. 2020): the article's transformer with learned positions and a norm of the embeddings."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.fields import TokenId
from core_model.checkpoint.families.seq2seq import Anatomy, Seq2SeqKeys, architectures, seq2seq_family


@dataclass(frozen=True, kw_only=True)
class BartKeys(Seq2SeqKeys):
    """The keys of config.json that decide what is computed."""

    bos_token_id: TokenId = 0
    eos_token_id: TokenId = 2
    pad_token_id: TokenId = 1
    decoder_start_token_id: TokenId = 2


FAMILY = seq2seq_family(
    Anatomy(pre_norm=False, embedding_norm=True),
    BartKeys,
    key="bart",
    label="BART",
    architectures={
        **architectures("Bart"),
        "BartForSequenceClassification": "sequence_classes",
        "BartForQuestionAnswering": "answer_span",
    },
)
