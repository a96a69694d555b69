"""ELECTRA (Clark et al. 2020): BERT over a narrow token table, as generator or as the discriminator trained with it."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import BARE, TABLE, EncoderHeads, HeadForm
from core_model.checkpoint.families.fields import Count
from core_model.config import LearnedPositions, StackConfig

_HEADS = EncoderHeads(
    forms={
        "masked_language_model": HeadForm(
            transform="generator_predictions.dense",
            activation="gelu",
            norm="generator_predictions.LayerNorm",
            output="generator_lm_head",
        ),
        "replaced_tokens": HeadForm(
            transform="discriminator_predictions.dense", output="discriminator_predictions.dense_prediction"
        ),
        "sequence_classes": HeadForm(
            transform="classifier.dense", activation="gelu", output="classifier.out_proj", pooling="first"
        ),
        **BARE,
    },
)


@dataclass(frozen=True, kw_only=True)
class ElectraKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    embedding_size: Count = 128


def _read(keys: ElectraKeys) -> StackConfig:
    position = LearnedPositions(max_length=keys.max_position_embeddings)
    return encoders.bert_stack(encoders.bert_plan(keys, encoders.NARROW_PLACES), position=position)


FAMILY = encoders.encoder_family(
    _HEADS,
    _read,
    key="electra",
    label="ELECTRA",
    architectures=encoders.architectures("Electra", ForMultipleChoice=None, ForPreTraining="replaced_tokens"),
    keys=ElectraKeys,
    places=encoders.NARROW_PLACES,
    sizes=encoders.bert_sizes(embedding_size=(TABLE, 1)),
    names=encoders.bert_names(
        _HEADS, *encoders.EMBEDDING, encoders.PROJECTION, *encoders.LAYER, prefixes=("electra.",)
    ),
    markers=(r"electra\.embeddings\.word_embeddings\.weight",),
)
