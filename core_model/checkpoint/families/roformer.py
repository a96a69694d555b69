"""RoFormer (Su et al. 2021): BERT with rotary positions in the paper's own layout."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import BARE, BERT_MASKED, TABLE, EncoderHeads, HeadForm
from core_model.checkpoint.families.fields import Count
from core_model.config import RotaryPositions, StackConfig
from core_model.errors import ConfigError

_SEQUENCE = HeadForm(transform="classifier.dense", output="classifier.out_proj", pooling="first")
_HEADS = EncoderHeads(forms={"masked_language_model": BERT_MASKED, "sequence_classes": _SEQUENCE, **BARE})


@dataclass(frozen=True, kw_only=True)
class RoformerKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    embedding_size: Count | None = None
    rotary_value: bool = False


def _read(keys: RoformerKeys) -> StackConfig:
    if keys.rotary_value:
        raise ConfigError("rotary_value is true in config.json: rotated values are not supported")
    plan = encoders.bert_plan(keys, encoders.NARROW_PLACES)
    return encoders.bert_stack(replace(plan, position=RotaryPositions(n_rotated=plan.head_size, layout="interleaved")))


FAMILY = encoders.encoder_family(
    _HEADS,
    _read,
    key="roformer",
    label="RoFormer",
    architectures=encoders.architectures("RoFormer", ForMultipleChoice=None),
    keys=RoformerKeys,
    places=encoders.NARROW_PLACES,
    sizes=encoders.bert_sizes(embedding_size=(TABLE, 1)),
    names=encoders.bert_names(
        _HEADS,
        *encoders.EMBEDDING,
        encoders.PROJECTION,
        *encoders.LAYER,
        prefixes=("roformer.",),
        buffers=(r"encoder\.embed_positions\.weight",),
    ),
    markers=(r"roformer\.embeddings\.word_embeddings\.weight",),
)
