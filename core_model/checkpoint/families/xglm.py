"""XGLM (Lin et al. 2021): GPT's layers as fairseq stores them, sines and cosines for positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
from core_model.checkpoint.families.fields import Count, Rate, activation, activation_name
from core_model.config import (
    FeedForwardSpec,
    LayerSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    SinusoidalPositions,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import ConfigError

_HEADS = DecoderHeads(table="embed_tokens.weight")
_OFFSET = 2
"""The position of the first token in fairseq's table."""


@dataclass(frozen=True, kw_only=True)
class XglmKeys(DecoderKeys):
    """The keys of config.json that decide what is computed."""

    d_model: Count
    num_layers: Count
    attention_heads: Count
    ffn_dim: Count
    max_position_embeddings: Count = 2048
    scale_embedding: bool = True
    activation_function: str = "gelu"
    add_cross_attention: bool = False
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.1
    activation_dropout: Rate = 0.0


def _read(keys: XglmKeys, weights: Weights) -> ModelConfig:
    equal_heads(keys, "d_model", "attention_heads")
    if keys.add_cross_attention:
        raise ConfigError("add_cross_attention is true in config.json: one that reads an encoder is not supported")
    padding = keys.special.padding
    if padding is not None and padding >= _OFFSET:
        raise ConfigError(
            f"pad_token_id is {padding} in config.json: XGLM's table of positions has zeros in that row, which a token "
            f"would read; it must be below {_OFFSET}"
        )
    norm = NormSpec()
    residual = ResidualSpec(before=norm, dropout=keys.dropout)
    layer = LayerSpec(
        attention=multi_head(keys.d_model, keys.attention_heads, mask=CAUSAL, dropout=keys.attention_dropout),
        attention_residual=residual,
        feed_forward=FeedForwardSpec(
            d_hidden=keys.ffn_dim,
            activation=activation("activation_function", keys.activation_function),
            dropout=keys.activation_dropout,
        ),
        feed_forward_residual=residual,
    )
    decoder = StackConfig(
        d_model=keys.d_model,
        embedding=TokenEmbedding(
            vocab_size=keys.vocab_size,
            d_embedding=keys.d_model,
            scale=keys.d_model**0.5 if keys.scale_embedding else 1.0,
            dropout=keys.dropout,
        ),
        position=SinusoidalPositions(layout="halves", endpoint=True, offset=_OFFSET),
        layers=(layer,) * keys.num_layers,
        final_norm=norm,
    )
    return ModelConfig(decoder=decoder, head=_HEADS.read(FAMILY, keys, weights), special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    layer = stack.layers[0]
    keys = XglmKeys(
        **common_keys(config),
        d_model=stack.d_model,
        num_layers=stack.n_layers,
        attention_heads=layer.attention.n_heads,
        ffn_dim=layer.feed_forward.d_hidden,
        scale_embedding=stack.tokens.scale != 1,
        activation_function=activation_name(layer.feed_forward.activation),
        dropout=layer.attention_residual.dropout,
        attention_dropout=layer.attention.dropout,
        activation_dropout=layer.feed_forward.dropout,
    )
    return foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "layers.{i}", "decoder.layers.{i}"
    return (
        *_HEADS.rows(config.head),
        row(f"{theirs}.self_attn.q_proj.*", f"{ours}.attention.query.*"),
        row(f"{theirs}.self_attn.k_proj.*", f"{ours}.attention.key.*"),
        row(f"{theirs}.self_attn.v_proj.*", f"{ours}.attention.value.*"),
        row(f"{theirs}.self_attn.out_proj.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.self_attn_layer_norm.*", f"{ours}.attention_residual.before.*"),
        row(f"{theirs}.fc1.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.fc2.*", f"{ours}.feed_forward.output.*"),
        row(f"{theirs}.final_layer_norm.*", f"{ours}.feed_forward_residual.before.*"),
        row("layer_norm.*", "decoder.final_norm.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size("embed_tokens.weight", 0),
        "d_model": weights.size("embed_tokens.weight", 1),
        "num_layers": weights.n_layers("layers.{i}.fc1.weight") or None,
        "ffn_dim": weights.size("layers.0.fc1.weight", 0),
    }


FAMILY = Family(
    key="xglm",
    label="XGLM",
    model_types=("xglm",),
    architectures=architectures("XGLM"),
    keys=XglmKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "num_layers",
        "n_heads": "attention_heads",
        "d_model": "d_model",
        "d_hidden": "ffn_dim",
        "vocab_size": "vocab_size",
        "max_length": "max_position_embeddings",
        "activation": "activation_function",
    },
    names=NameTable(rows=_rows, prefixes=("model.",), roots=_HEADS.roots, buffers=(r"embed_positions\.weights",)),
    aliases={"hidden_size": "d_model", "num_hidden_layers": "num_layers", "num_attention_heads": "attention_heads"},
)
