"""ALBERT (Lan et al. 2020): few layers run many times, over a narrow token table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import BARE, TABLE, EncoderHeads, HeadForm
from core_model.checkpoint.families.family import Row, row
from core_model.checkpoint.families.fields import Count, Rate
from core_model.config import LearnedPositions, ModelConfig, StackConfig
from core_model.errors import ConfigError

_HEADS = EncoderHeads(
    forms={
        "masked_language_model": HeadForm(
            transform="predictions.dense",
            norm="predictions.LayerNorm",
            output="predictions.decoder",
            biases=("predictions.decoder.bias", "predictions.bias"),
        ),
        "sequence_classes": HeadForm(transform="pooler", activation="tanh", output="classifier", pooling="first"),
        **BARE,
    },
)
_LAYER = "encoder.albert_layer_groups.{group}.albert_layers.{inner}"
_FIRST_OUTPUT = f"{_LAYER.format(group=0, inner=0)}.ffn_output.weight"


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


def _read(keys: AlbertKeys) -> StackConfig:
    weights_of = _weights_of(keys.num_hidden_layers, keys.num_hidden_groups, keys.inner_group_num)
    if keys.inner_group_num > 1 and len(set(weights_of)) == len(weights_of):
        raise ConfigError(
            f"inner_group_num is {keys.inner_group_num} in config.json and no layer is run twice "
            f"(num_hidden_layers {keys.num_hidden_layers}, num_hidden_groups {keys.num_hidden_groups}): not supported"
        )
    plan = encoders.bert_plan(keys, encoders.NARROW_PLACES)
    return encoders.bert_stack(
        plan,
        [plan.layer()] * len(weights_of),
        embedding=plan.embedding(norm=plan.norm, always_projects=True),
        position=LearnedPositions(max_length=keys.max_position_embeddings),
        weights_of=weights_of,
    )


def _weights_of(n_runs: int, n_groups: int, n_inner: int) -> tuple[int, ...]:
    """The first layer with the same weights, for each that runs; the groups take equal shares of the runs, in turn."""
    groups = [int(run / (n_runs / n_groups)) for run in range(n_runs)]
    return tuple(groups.index(group) * n_inner + inner for group in groups for inner in range(n_inner))


def _group_size(weights_of: tuple[int, ...]) -> int:
    """How many layers are run before the first of them is run again; 1 where none is."""
    return next((layer - owner for layer, owner in enumerate(weights_of) if owner != layer), 1)


def _further_keys(config: ModelConfig) -> dict[str, int]:
    stack = config.output_stack
    n_inner = _group_size(stack.weights_of)
    return {
        "num_hidden_layers": max(stack.n_layers // n_inner, 1),
        "num_hidden_groups": max(len(set(stack.weights_of)) // n_inner, 1),
        "inner_group_num": n_inner,
    }


def _layers(config: ModelConfig) -> Iterable[Row]:
    weights_of = config.output_stack.weights_of
    n_inner = _group_size(weights_of)
    for number, owner in enumerate(sorted(set(weights_of))):
        layer = _LAYER.format(group=number // n_inner, inner=number % n_inner)
        yield from encoders.encoder_rows(_NAMES, layer=layer, ours=f"encoder.layers.{owner}")


_NAMES = {
    "attention.query.*": "attention.query.*",
    "attention.key.*": "attention.key.*",
    "attention.value.*": "attention.value.*",
    "attention.dense.*": "attention.output.*",
    "attention.LayerNorm.*": "attention_residual.total.*",
    "ffn.*": "feed_forward.input.*",
    "ffn_output.*": "feed_forward.output.*",
    "full_layer_layer_norm.*": "feed_forward_residual.total.*",
}

FAMILY = encoders.encoder_family(
    _HEADS,
    _read,
    _further_keys,
    key="albert",
    label="ALBERT",
    architectures=encoders.architectures(
        "Albert", ForPreTraining="masked_language_model", ForMultipleChoice="sequence_classes"
    ),
    keys=AlbertKeys,
    sizes=encoders.bert_sizes(
        embedding_size=(TABLE, 1), hidden_size=(_FIRST_OUTPUT, 0), intermediate_size=(_FIRST_OUTPUT, 1)
    ),
    places=encoders.NARROW_PLACES,
    names=encoders.bert_names(
        _HEADS,
        *encoders.EMBEDDING,
        row("encoder.embedding_hidden_mapping_in.*", "encoder.embedding.projection.*"),
        of_config=_layers,
        prefixes=("albert.",),
        roots=("predictions.", "classifier.", "qa_outputs."),
        unused=(r"sop_classifier\..*",),
    ),
    markers=(r"(albert\.)?encoder\.albert_layer_groups\.0\.albert_layers\.0\.ffn\.weight",),
    layer_counts=("num_hidden_groups", "inner_group_num"),
    shares_layers=True,
)
