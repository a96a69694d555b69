"""XGLM (Lin et al. 2021): GPT's layers as fairseq stores them, sines and cosines for positions."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import DecoderHeads, DecoderKeys, architectures, decoder_family
from core_model.checkpoint.families.fairseq import layer_names
from core_model.checkpoint.families.family import layer_rows, name_table, read_sizes, row
from core_model.checkpoint.families.fields import Count, Rate
from core_model.checkpoint.families.plan import read_plan, write_keys
from core_model.config import ModelConfig, SinusoidalPositions, StackConfig
from core_model.errors import ConfigError

_HEADS = DecoderHeads(table="embed_tokens.weight")
_PLACES = {
    "n_layers": "num_layers",
    "n_heads": "attention_heads",
    "d_model": "d_model",
    "d_hidden": "ffn_dim",
    "vocab_size": "vocab_size",
    "max_length": "max_position_embeddings",
    "activation": "activation_function",
    "embedding_dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "residual_dropout": "dropout",
}
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


def _read(keys: XglmKeys) -> StackConfig:
    if keys.add_cross_attention:
        raise ConfigError("add_cross_attention is true in config.json: one that reads an encoder is not supported")
    padding = keys.special.padding
    if padding is not None and padding >= _OFFSET:
        raise ConfigError(
            f"pad_token_id is {padding} in config.json: XGLM's table of positions has zeros in that row, which a token "
            f"would read; it must be below {_OFFSET}"
        )
    plan = read_plan(keys, _PLACES)
    layer = plan.layer(feed_forward=plan.feed_forward(dropout=keys.activation_dropout))
    return plan.stack(
        [layer] * plan.n_layers,
        embedding=plan.embedding(scale=keys.d_model**0.5 if keys.scale_embedding else 1.0),
        position=SinusoidalPositions(layout="halves", endpoint=True, offset=_OFFSET),
    )


def _write(config: ModelConfig) -> XglmKeys:
    stack = config.output_stack
    return XglmKeys(
        **write_keys(config, _PLACES),
        scale_embedding=stack.tokens.scale != 1,
        activation_dropout=stack.layers[0].feed_forward.dropout,
    )


FAMILY = decoder_family(
    _HEADS,
    _read,
    _write,
    key="xglm",
    label="XGLM",
    architectures=architectures("XGLM"),
    keys=XglmKeys,
    sizes=read_sizes(
        {
            "vocab_size": (_HEADS.table, 0),
            "d_model": (_HEADS.table, 1),
            "ffn_dim": ("layers.0.fc1.weight", 0),
        },
        num_layers="layers.{i}.fc1.weight",
    ),
    places=_PLACES,
    names=name_table(
        _HEADS,
        *layer_rows("layers.{i}", layer_names("before")),
        row("layer_norm.*", "decoder.final_norm.*"),
        prefixes=("model.",),
        buffers=(r"embed_positions\.weights",),
    ),
    aliases={"hidden_size": "d_model", "num_hidden_layers": "num_layers", "num_attention_heads": "attention_heads"},
)
