"""nanoGPT state dicts (Karpathy 2022): GPT-2's names with [out, in] matrices, often without biases or a config.

Its model_args say what the tensors do not: in a model_args.json or config.json beside the weights, or in their header.
Where there are none, n_heads is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families.decoders import CAUSAL, DecoderHeads, DecoderKeys, equal_heads
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Rate, activation
from core_model.config import (
    FeedForwardSpec,
    LayerSpec,
    LearnedPositions,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import ConfigError

_HEADS = DecoderHeads(table="wte.weight")


@dataclass(frozen=True, kw_only=True)
class NanoGptKeys(DecoderKeys):
    """nanoGPT's model_args. `activation` is not one of them: versions before 2023 had the tanh approximation."""

    n_layer: Count
    n_head: Count
    n_embd: Count
    block_size: Count
    bias: bool = True
    activation: str = "gelu"
    dropout: Rate = 0.0


def _read(keys: NanoGptKeys, weights: Weights) -> ModelConfig:
    equal_heads(keys, "n_embd", "n_head")
    norm = NormSpec(bias=keys.bias)
    residual = ResidualSpec(before=norm, dropout=keys.dropout)
    layer = LayerSpec(
        attention=multi_head(
            keys.n_embd,
            keys.n_head,
            mask=CAUSAL,
            query_bias=keys.bias,
            key_bias=keys.bias,
            value_bias=keys.bias,
            output_bias=keys.bias,
            dropout=keys.dropout,
        ),
        attention_residual=residual,
        feed_forward=FeedForwardSpec(
            d_hidden=4 * keys.n_embd, activation=activation("activation", keys.activation), bias=keys.bias
        ),
        feed_forward_residual=residual,
    )
    decoder = StackConfig(
        d_model=keys.n_embd,
        embedding=TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.n_embd, dropout=keys.dropout),
        position=LearnedPositions(max_length=keys.block_size),
        layers=(layer,) * keys.n_layer,
        final_norm=norm,
    )
    return ModelConfig(decoder=decoder, head=_HEADS.read(FAMILY, keys, weights), special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    raise ConfigError("nanoGPT has no config.json that another program reads: save the model as GPT-2 instead")


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "h.{i}", "decoder.layers.{i}"
    return (
        *_HEADS.rows(config.head),
        row("wpe.weight", "decoder.position.weight"),
        row(f"{theirs}.ln_1.*", f"{ours}.attention_residual.before.*"),
        row(f"{theirs}.attn.c_attn.*", *(f"{ours}.attention.{part}.*" for part in ("query", "key", "value"))),
        row(f"{theirs}.attn.c_proj.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.ln_2.*", f"{ours}.feed_forward_residual.before.*"),
        row(f"{theirs}.mlp.c_fc.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.mlp.c_proj.*", f"{ours}.feed_forward.output.*"),
        row("ln_f.*", "decoder.final_norm.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size("wte.weight", 0),
        "n_embd": weights.size("wte.weight", 1),
        "block_size": weights.size("wpe.weight", 0),
        "n_layer": weights.n_layers("h.{i}.ln_1.weight") or None,
        "bias": "h.0.ln_1.bias" in weights,
    }


def _is_stored_out_by_in(weights: Weights) -> bool:
    """Whether the fused projection is nn.Linear's [3C, C]; GPT-2's is [C, 3C]."""
    shape = weights.shapes["h.0.attn.c_attn.weight"]
    return len(shape) == 2 and shape[0] == 3 * shape[1]


FAMILY = Family(
    key="nanogpt",
    label="nanoGPT",
    model_types=("nanogpt",),
    architectures={"GPT": "language_model"},
    keys=NanoGptKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "n_layer",
        "n_heads": "n_head",
        "d_model": "n_embd",
        "vocab_size": "vocab_size",
        "max_length": "block_size",
        "activation": "activation",
    },
    names=NameTable(
        rows=_rows,
        prefixes=("transformer.",),
        roots=_HEADS.roots,
        buffers=(r"h\.\d+\.attn\.(masked_)?bias",),
    ),
    document="model_args.json",
    part="model_args",
    markers=(r"(transformer\.)?wpe\.weight", r"(transformer\.)?h\.0\.attn\.c_attn\.weight"),
    fit=_is_stored_out_by_in,
)
