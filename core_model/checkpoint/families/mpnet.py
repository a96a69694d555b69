"""MPNet (Song et al. 2020): RoBERTa's positions, and T5's buckets of distance shared by all layers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import BARE, FAIRSEQ_MASKED, FAIRSEQ_SEQUENCE, EncoderHeads
from core_model.checkpoint.families.family import row
from core_model.checkpoint.families.fields import Count, CountOrNone, TokenId
from core_model.config import BucketedPositions, StackConfig
from core_model.errors import ConfigError

_N_BUCKETS = 32
_PADDING = 1
"""The id positions are counted from, whatever pad_token_id is."""
_HEADS = EncoderHeads(forms={"masked_language_model": FAIRSEQ_MASKED, "sequence_classes": FAIRSEQ_SEQUENCE, **BARE})
_PLACES = {fact: key for fact, key in encoders.PLACES.items() if fact != "n_types"}


@dataclass(frozen=True, kw_only=True)
class MpnetKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    type_vocab_size: CountOrNone = 0
    relative_attention_num_buckets: Count = _N_BUCKETS
    pad_token_id: TokenId = 1


def _read(keys: MpnetKeys) -> StackConfig:
    if keys.relative_attention_num_buckets != _N_BUCKETS:
        raise ConfigError(
            f"relative_attention_num_buckets is {keys.relative_attention_num_buckets} in config.json: "
            f"MPNet always uses {_N_BUCKETS}"
        )
    buckets = BucketedPositions(n_buckets=_N_BUCKETS)
    first = encoders.bert_plan(keys, _PLACES, typed=False, position=buckets)
    other = replace(first, position=replace(buckets, from_layer=0))
    return encoders.bert_stack(
        first,
        [first.layer(), *[other.layer()] * (first.n_layers - 1)],
        position=encoders.positions_after_padding(keys.max_position_embeddings, _PADDING),
    )


_LAYER = {
    "attention.attn.q.*": "attention.query.*",
    "attention.attn.k.*": "attention.key.*",
    "attention.attn.v.*": "attention.value.*",
    "attention.attn.o.*": "attention.output.*",
    "attention.LayerNorm.*": "attention_residual.total.*",
    **encoders.MATRICES,
    "output.LayerNorm.*": "feed_forward_residual.total.*",
}

FAMILY = encoders.encoder_family(
    _HEADS,
    _read,
    key="mpnet",
    label="MPNet",
    architectures=encoders.architectures("MPNet", ForMultipleChoice=None),
    keys=MpnetKeys,
    places=_PLACES,
    names=encoders.bert_names(
        _HEADS,
        *encoders.EMBEDDING,
        row("encoder.relative_attention_bias.weight", "encoder.layers.0.attention.position_bias.weight"),
        *encoders.encoder_rows(_LAYER),
        prefixes=("mpnet.",),
    ),
    markers=(r"(mpnet\.)?encoder\.relative_attention_bias\.weight",),
)
