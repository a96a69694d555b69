"""BLOOM (Le Scao et al. 2022): ALiBi, a norm after the embedding, queries, keys and values fused head by head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families.conversion import Joined
from core_model.checkpoint.families.decoders import (
    CAUSAL,
    DecoderHeads,
    DecoderKeys,
    architectures,
    common_keys,
    equal_heads,
    foreign,
)
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Positive, Rate
from core_model.config import (
    AlibiPositions,
    FeedForwardSpec,
    LayerSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import ConfigError

_HEADS = DecoderHeads(table="word_embeddings.weight")


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


def _read(keys: BloomKeys, weights: Weights) -> ModelConfig:
    equal_heads(keys, "hidden_size", "n_head")
    if keys.apply_residual_connection_post_layernorm:
        raise ConfigError(
            "apply_residual_connection_post_layernorm is true in config.json: a residual stream that is replaced by "
            "its norm is not supported"
        )
    norm = NormSpec(eps=keys.layer_norm_epsilon)
    residual = ResidualSpec(before=norm, dropout=keys.hidden_dropout)
    layer = LayerSpec(
        attention=multi_head(
            keys.hidden_size, keys.n_head, mask=CAUSAL, position=AlibiPositions(), dropout=keys.attention_dropout
        ),
        attention_residual=residual,
        feed_forward=FeedForwardSpec(d_hidden=4 * keys.hidden_size, activation="gelu_tanh"),
        feed_forward_residual=residual,
    )
    decoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.hidden_size, norm=norm),
        layers=(layer,) * keys.n_layer,
        final_norm=norm,
    )
    return ModelConfig(decoder=decoder, head=_HEADS.read(FAMILY, keys, weights), special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    layer = stack.layers[0]
    keys = BloomKeys(
        **common_keys(config),
        hidden_size=stack.d_model,
        n_layer=stack.n_layers,
        n_head=layer.attention.n_heads,
        layer_norm_epsilon=stack.final_norm.eps if stack.final_norm else 1e-5,
        hidden_dropout=layer.attention_residual.dropout,
        attention_dropout=layer.attention.dropout,
    )
    return foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "h.{i}", "decoder.layers.{i}"
    n_heads = config.output_stack.layers[0].attention.n_heads
    return (
        *_HEADS.rows(config.head),
        row("word_embeddings_layernorm.*", "decoder.embedding.norm.*"),
        row(f"{theirs}.input_layernorm.*", f"{ours}.attention_residual.before.*"),
        row(
            f"{theirs}.self_attention.query_key_value.*",
            *(f"{ours}.attention.{part}.*" for part in ("query", "key", "value")),
            conversion=Joined(n_groups=n_heads),
        ),
        row(f"{theirs}.self_attention.dense.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.post_attention_layernorm.*", f"{ours}.feed_forward_residual.before.*"),
        row(f"{theirs}.mlp.dense_h_to_4h.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.mlp.dense_4h_to_h.*", f"{ours}.feed_forward.output.*"),
        row("ln_f.*", "decoder.final_norm.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size("word_embeddings.weight", 0),
        "hidden_size": weights.size("word_embeddings.weight", 1),
        "n_layer": weights.n_layers("h.{i}.input_layernorm.weight") or None,
    }


FAMILY = Family(
    key="bloom",
    label="BLOOM",
    model_types=("bloom",),
    architectures=architectures("Bloom", "sequence_classes", "token_classes", "answer_span"),
    keys=BloomKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "n_layer",
        "n_heads": "n_head",
        "d_model": "hidden_size",
        "vocab_size": "vocab_size",
        "eps": "layer_norm_epsilon",
    },
    names=NameTable(rows=_rows, prefixes=("transformer.",), roots=_HEADS.roots),
    aliases={"n_embed": "hidden_size", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
    markers=(
        r"(transformer\.)?word_embeddings_layernorm\.weight",
        r"(transformer\.)?h\.0\.self_attention\.dense\.bias",
    ),
)
