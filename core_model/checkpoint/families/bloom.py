"""BLOOM (Le Scao et al. 2022): ALiBi, a norm after the embedding, queries, keys and values fused head by head."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import (
    DecoderHeads,
    DecoderKeys,
    architectures,
    decoder_family,
    fused_by_head,
)
from core_model.checkpoint.families.family import Weights, layer_rows, name_table, read_sizes, row
from core_model.checkpoint.families.fields import Count, CountOrNone, Positive, Rate
from core_model.checkpoint.families.plan import read_plan, write_keys
from core_model.config import AlibiPositions, ModelConfig, StackConfig
from core_model.errors import ConfigError

_HEADS = DecoderHeads(table="word_embeddings.weight")
_PLACES = {
    "n_layers": "n_layer",
    "n_heads": "n_head",
    "d_model": "hidden_size",
    "vocab_size": "vocab_size",
    "eps": "layer_norm_epsilon",
    "attention_dropout": "attention_dropout",
    "residual_dropout": "hidden_dropout",
}


@dataclass(frozen=True, kw_only=True)
class BloomKeys(DecoderKeys):
    """The keys of config.json that decide what is computed."""

    hidden_size: Count
    n_layer: Count
    n_head: Count
    layer_norm_epsilon: Positive = 1e-5
    apply_residual_connection_post_layernorm: bool = False
    hidden_dropout: Rate = 0.0
    attention_dropout: Rate = 0.0
    pretraining_tp: CountOrNone | None = 1
    slow_but_exact: bool = False


def _read(keys: BloomKeys) -> StackConfig:
    if keys.apply_residual_connection_post_layernorm:
        raise ConfigError(
            "apply_residual_connection_post_layernorm is true in config.json: a residual stream that is replaced by "
            "its norm is not supported"
        )
    plan = read_plan(keys, _PLACES, activation="gelu_tanh", position=AlibiPositions())
    return plan.stack([plan.layer()] * plan.n_layers, embedding=plan.embedding(norm=plan.norm))


def _remarks(keys: BloomKeys, weights: Weights, config: ModelConfig) -> tuple[str, ...]:
    if not keys.slow_but_exact or (keys.pretraining_tp or 1) == 1:
        return ()
    return (
        f"slow_but_exact is true and pretraining_tp {keys.pretraining_tp} in config.json: transformers then leaves out "
        "the biases of the output maps of attention and feed-forward, which are added here as in training",
    )


def _write(config: ModelConfig) -> BloomKeys:
    return BloomKeys(**write_keys(config, _PLACES))


FUSED = "self_attention.query_key_value.*"
MATRICES = {
    "self_attention.dense.*": "attention.output.*",
    "mlp.dense_h_to_4h.*": "feed_forward.input.*",
    "mlp.dense_4h_to_h.*": "feed_forward.output.*",
}
NORMS = {
    "input_layernorm.*": "attention_residual.before.*",
    "post_attention_layernorm.*": "feed_forward_residual.before.*",
}

FAMILY = decoder_family(
    _HEADS,
    _read,
    _write,
    key="bloom",
    label="BLOOM",
    architectures=architectures("Bloom", "sequence_classes", "token_classes", "answer_span"),
    keys=BloomKeys,
    remarks=_remarks,
    sizes=read_sizes(
        {"vocab_size": (_HEADS.table, 0), "hidden_size": (_HEADS.table, 1)}, n_layer="h.{i}.input_layernorm.weight"
    ),
    places=_PLACES,
    names=name_table(
        _HEADS,
        row("word_embeddings_layernorm.*", "decoder.embedding.norm.*"),
        *layer_rows("h.{i}", {**NORMS, **MATRICES}),
        row("ln_f.*", "decoder.final_norm.*"),
        of_config=fused_by_head("h.{i}", FUSED),
        prefixes=("transformer.",),
    ),
    aliases={"n_embed": "hidden_size", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
    markers=(
        r"(transformer\.)?word_embeddings_layernorm\.weight",
        r"(transformer\.)?h\.0\.self_attention\.dense\.bias",
    ),
)
