"""MPNet (Song et al. 2020): RoBERTa's positions, and T5's buckets of distance shared by all layers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import (
    ANSWER_SPAN,
    FAIRSEQ_MASKED,
    FAIRSEQ_SEQUENCE,
    TOKEN_CLASSES,
    EncoderHeads,
)
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, TokenId
from core_model.config import BucketedPositions, ModelConfig, StackConfig
from core_model.errors import ConfigError

_N_BUCKETS = 32
_PADDING = 1
"""The id positions are counted from, whatever pad_token_id is."""
_HEADS = EncoderHeads(
    table=encoders.TABLE,
    forms={
        "masked_language_model": FAIRSEQ_MASKED,
        "sequence_classes": FAIRSEQ_SEQUENCE,
        "token_classes": TOKEN_CLASSES,
        "answer_span": ANSWER_SPAN,
    },
)


@dataclass(frozen=True, kw_only=True)
class MpnetKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed."""

    relative_attention_num_buckets: Count = _N_BUCKETS
    pad_token_id: TokenId = 1


def _read(keys: MpnetKeys, weights: Weights) -> ModelConfig:
    encoders.require_encoder(keys)
    if keys.relative_attention_num_buckets != _N_BUCKETS:
        raise ConfigError(
            f"relative_attention_num_buckets is {keys.relative_attention_num_buckets} in config.json: "
            f"MPNet always uses {_N_BUCKETS}"
        )
    buckets = BucketedPositions(n_buckets=_N_BUCKETS)
    first = encoders.post_norm_layer(keys, buckets)
    other = encoders.post_norm_layer(keys, replace(buckets, from_layer=0))
    encoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=replace(encoders.embedding(keys), n_types=0),
        position=encoders.positions_after_padding(keys.max_position_embeddings, _PADDING),
        layers=(first, *(other,) * (keys.num_hidden_layers - 1)),
    )
    head = _HEADS.read(FAMILY, keys, weights, d_model=keys.hidden_size, norm=keys.norm)
    return ModelConfig(encoder=encoder, head=head, special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    return encoders.foreign(FAMILY, MpnetKeys(**encoders.common_keys(config)), config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "encoder.layer.{i}.attention", "encoder.layers.{i}"
    return (
        *_HEADS.rows(config.head),
        *encoders.embedding_rows(),
        row("encoder.relative_attention_bias.weight", "encoder.layers.0.attention.position_bias.weight"),
        row(f"{theirs}.attn.q.*", f"{ours}.attention.query.*"),
        row(f"{theirs}.attn.k.*", f"{ours}.attention.key.*"),
        row(f"{theirs}.attn.v.*", f"{ours}.attention.value.*"),
        row(f"{theirs}.attn.o.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.LayerNorm.*", f"{ours}.attention_residual.total.*"),
        *encoders.feed_forward_rows(),
    )


FAMILY = Family(
    key="mpnet",
    label="MPNet",
    model_types=("mpnet",),
    architectures=encoders.architectures("MPNet"),
    keys=MpnetKeys,
    read=_read,
    write=_write,
    sizes=encoders.sizes,
    places={name: key for name, key in encoders.PLACES.items() if name != "n_types"},
    names=NameTable(
        rows=_rows,
        prefixes=("mpnet.",),
        roots=_HEADS.roots,
        spellings=encoders.OLD_SPELLINGS,
        buffers=encoders.BUFFERS,
        unused=_HEADS.unused,
    ),
    markers=(r"(mpnet\.)?encoder\.relative_attention_bias\.weight",),
)
