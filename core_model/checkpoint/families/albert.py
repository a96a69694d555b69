"""ALBERT (Lan et al. 2020): few layers run many times, over a narrow token table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import ANSWER_SPAN, TOKEN_CLASSES, EncoderHeads, HeadForm
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Rate
from core_model.config import LearnedPositions, ModelConfig, StackConfig
from core_model.errors import ConfigError

_HEADS = EncoderHeads(
    table=encoders.TABLE,
    forms={
        "masked_language_model": HeadForm(
            transform="predictions.dense",
            norm="predictions.LayerNorm",
            output="predictions.decoder",
            biases=("predictions.bias", "predictions.decoder.bias"),
        ),
        "sequence_classes": HeadForm(transform="pooler", activation="tanh", output="classifier", pooling="first"),
        "token_classes": TOKEN_CLASSES,
        "answer_span": ANSWER_SPAN,
    },
)


@dataclass(frozen=True, kw_only=True)
class AlbertKeys(encoders.EncoderKeys):
    """The keys of config.json that decide what is computed.

    A group is `inner_group_num` layers with weights of their own; `num_hidden_layers` is how often a group is run.
    """

    embedding_size: Count = 128
    num_hidden_groups: Count = 1
    inner_group_num: Count = 1
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: Rate = 0.0
    attention_probs_dropout_prob: Rate = 0.0


def _read(keys: AlbertKeys, weights: Weights) -> ModelConfig:
    encoders.require_encoder(keys)
    weights_of = _weights_of(keys.num_hidden_layers, keys.num_hidden_groups, keys.inner_group_num)
    if keys.inner_group_num > 1 and len(set(weights_of)) == len(weights_of):
        raise ConfigError(
            f"inner_group_num is {keys.inner_group_num} in config.json and no layer is run twice "
            f"(num_hidden_layers {keys.num_hidden_layers}, num_hidden_groups {keys.num_hidden_groups}): not supported"
        )
    encoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=replace(encoders.typed_embedding(keys, keys.embedding_size), always_projects=True),
        position=LearnedPositions(max_length=keys.max_position_embeddings),
        layers=(encoders.post_norm_layer(keys),) * len(weights_of),
        weights_of=weights_of,
    )
    head = _HEADS.read(FAMILY, keys, weights, d_model=keys.hidden_size, norm=keys.norm, d_embedding=keys.embedding_size)
    return ModelConfig(encoder=encoder, head=head, special=keys.special)


def _weights_of(n_runs: int, n_groups: int, n_inner: int) -> tuple[int, ...]:
    """The first layer with the same weights, for each that runs; the groups take equal shares of the runs, in turn."""
    groups = [int(run / (n_runs / n_groups)) for run in range(n_runs)]
    return tuple(groups.index(group) * n_inner + inner for group in groups for inner in range(n_inner))


def _group_size(weights_of: tuple[int, ...]) -> int:
    """How many layers are run before the first of them is run again; 1 where none is."""
    return next((layer - owner for layer, owner in enumerate(weights_of) if owner != layer), 1)


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    n_inner = _group_size(stack.weights_of)
    keys = AlbertKeys(
        **{**encoders.common_keys(config), "num_hidden_layers": max(stack.n_layers // n_inner, 1)},
        embedding_size=stack.tokens.d_embedding,
        num_hidden_groups=max(len(set(stack.weights_of)) // n_inner, 1),
        inner_group_num=n_inner,
    )
    return encoders.foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    assert config.encoder is not None
    weights_of = config.encoder.weights_of
    n_inner = _group_size(weights_of)
    layers = [
        line
        for number, owner in enumerate(sorted(set(weights_of)))
        for line in _layer_rows(
            f"encoder.albert_layer_groups.{number // n_inner}.albert_layers.{number % n_inner}",
            f"encoder.layers.{owner}",
        )
    ]
    return (
        *_HEADS.rows(config.head),
        *encoders.embedding_rows(),
        row("encoder.embedding_hidden_mapping_in.*", "encoder.embedding.projection.*"),
        *layers,
    )


def _layer_rows(theirs: str, ours: str) -> tuple[Row, ...]:
    return (
        *(row(f"{theirs}.attention.{part}.*", f"{ours}.attention.{part}.*") for part in ("query", "key", "value")),
        row(f"{theirs}.attention.dense.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.attention.LayerNorm.*", f"{ours}.attention_residual.total.*"),
        row(f"{theirs}.ffn.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.ffn_output.*", f"{ours}.feed_forward.output.*"),
        row(f"{theirs}.full_layer_layer_norm.*", f"{ours}.feed_forward_residual.total.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    layer = "encoder.albert_layer_groups.0.albert_layers.0"
    return {
        "vocab_size": weights.size(encoders.TABLE, 0),
        "embedding_size": weights.size(encoders.TABLE, 1),
        "hidden_size": weights.size(f"{layer}.ffn_output.weight", 0),
        "intermediate_size": weights.size(f"{layer}.ffn_output.weight", 1),
        "max_position_embeddings": weights.size("embeddings.position_embeddings.weight", 0),
        "type_vocab_size": weights.size("embeddings.token_type_embeddings.weight", 0),
    }


FAMILY = Family(
    key="albert",
    label="ALBERT",
    model_types=("albert",),
    architectures={
        **encoders.architectures("Albert"),
        "AlbertForPreTraining": "masked_language_model",
        "AlbertForMultipleChoice": "sequence_classes",
    },
    keys=AlbertKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places=encoders.PLACES,
    names=NameTable(
        rows=_rows,
        prefixes=("albert.",),
        roots=tuple(root for root in _HEADS.roots if root != "pooler."),
        spellings=encoders.OLD_SPELLINGS,
        buffers=encoders.BUFFERS,
        unused=(*_HEADS.unused, r"sop_classifier\..*"),
    ),
    markers=(r"(albert\.)?encoder\.albert_layer_groups\.0\.albert_layers\.0\.ffn\.weight",),
    layer_counts=("num_hidden_groups", "inner_group_num"),
    shares_layers=True,
)
