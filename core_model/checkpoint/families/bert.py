"""BERT (Devlin et al. 2019), as transformers and the first TensorFlow conversions store it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import BARE, BERT_MASKED, EncoderHeads, HeadForm
from core_model.config import LearnedPositions, StackConfig
from core_model.errors import ConfigError
from core_model.wording import shown

_POOLED = HeadForm(transform="pooler.dense", activation="tanh", output="classifier", pooling="first")
_NEXT_SENTENCE = replace(
    _POOLED, output="cls.seq_relationship", labels=("sentence B follows A", "sentence B is random")
)
_HEADS = EncoderHeads(
    forms={"masked_language_model": BERT_MASKED, "sequence_classes": _POOLED, **BARE},
    of_class={"BertForNextSentencePrediction": _NEXT_SENTENCE},
)


@dataclass(frozen=True, kw_only=True)
class BertKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    position_embedding_type: str | None = "absolute"


def _read(keys: BertKeys) -> StackConfig:
    if keys.position_embedding_type not in (None, "absolute"):
        raise ConfigError(
            f"position_embedding_type is {shown(repr(keys.position_embedding_type))} in config.json: "
            "only BERT's own 'absolute' positions are supported"
        )
    return encoders.bert_stack(
        encoders.bert_plan(keys), position=LearnedPositions(max_length=keys.max_position_embeddings)
    )


FAMILY = encoders.encoder_family(
    _HEADS,
    _read,
    key="bert",
    label="BERT",
    architectures=encoders.architectures(
        "Bert",
        ForPreTraining="masked_language_model",
        ForMultipleChoice="sequence_classes",
        ForNextSentencePrediction="sequence_classes",
    ),
    keys=BertKeys,
    names=encoders.bert_names(
        _HEADS, *encoders.EMBEDDING, *encoders.LAYER, prefixes=("bert.",), roots=("cls.", "classifier.", "qa_outputs.")
    ),
    markers=(r"bert\.embeddings\.word_embeddings\.weight", r"bert\.encoder\.layer\.0\.attention\.self\.query\.weight"),
)
