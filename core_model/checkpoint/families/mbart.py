"""mBART and mBART-50 (Liu et al. 2020, Tang et al. 2020): BART with its norms before the sublayers."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.fields import TokenId
from core_model.checkpoint.families.seq2seq import Anatomy, Seq2SeqKeys, architectures, seq2seq_family


@dataclass(frozen=True, kw_only=True)
class MBartKeys(Seq2SeqKeys):
    """The keys of config.json that decide what is computed. Without a start token a target starts with its language."""

    bos_token_id: TokenId = 0
    eos_token_id: TokenId = 2
    pad_token_id: TokenId = 1


FAMILY = seq2seq_family(
    Anatomy(pre_norm=True, embedding_norm=True),
    MBartKeys,
    key="mbart",
    label="mBART",
    architectures={
        **architectures("MBart"),
        "MBartForSequenceClassification": None,  # it reads at the end token, which the language follows
        "MBartForQuestionAnswering": "answer_span",
    },
)
