"""RoBERTa (Liu et al. 2019), XLM-RoBERTa and CamemBERT: BERT with fairseq's positions and heads."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import BARE, FAIRSEQ_MASKED, FAIRSEQ_SEQUENCE, EncoderHeads
from core_model.checkpoint.families.fields import TokenId
from core_model.config import StackConfig

_HEADS = EncoderHeads(forms={"masked_language_model": FAIRSEQ_MASKED, "sequence_classes": FAIRSEQ_SEQUENCE, **BARE})


@dataclass(frozen=True, kw_only=True)
class RobertaKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    pad_token_id: TokenId = 1


def _read(keys: RobertaKeys) -> StackConfig:
    position = encoders.positions_after_padding(keys.max_position_embeddings, keys.pad_token_id)
    return encoders.bert_stack(encoders.bert_plan(keys), position=position)


FAMILY = encoders.encoder_family(
    _HEADS,
    _read,
    key="roberta",
    label="RoBERTa",
    model_types=("roberta", "xlm-roberta", "camembert"),
    architectures={
        **encoders.architectures("Roberta", ForMultipleChoice=None),
        **encoders.architectures("XLMRoberta", ForMultipleChoice=None),
        **encoders.architectures("Camembert", ForMultipleChoice=None),
    },
    keys=RobertaKeys,
    names=encoders.bert_names(_HEADS, *encoders.EMBEDDING, *encoders.LAYER, prefixes=("roberta.",)),
    markers=(r"roberta\.embeddings\.word_embeddings\.weight",),
)
