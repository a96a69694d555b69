"""MPT (MosaicML 2023): ALiBi, no biases, queries, keys and values fused and perhaps clipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter

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
from core_model.checkpoint.families.fields import Count, CountOrNone, Positive, Rate
from core_model.checkpoint.wording import shown
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

_HEADS = DecoderHeads(table="wte.weight")


@dataclass(frozen=True, kw_only=True)
class MptAttentionKeys:
    """The keys of attn_config.

    `alibi_bias_max` is what the models were trained with (16 in StoryWriter). transformers computes 8 whatever it says.
    """

    attn_type: str = "multihead_attention"
    attn_pdrop: Rate = 0.0
    clip_qkv: CountOrNone | Positive | None = None
    softmax_scale: Positive | None = None
    prefix_lm: bool = False
    qk_ln: bool = False
    alibi: bool = True
    alibi_bias_max: Positive = 8.0


@dataclass(frozen=True, kw_only=True)
class MptKeys(DecoderKeys):
    """The keys of config.json that decide what is computed."""

    d_model: Count
    n_layers: Count
    n_heads: Count
    max_seq_len: Count = 2048
    attn_config: MptAttentionKeys = MptAttentionKeys()
    logit_scale: float | str | None = None
    no_bias: bool = True
    norm_type: str = "low_precision_layernorm"
    layer_norm_epsilon: Positive = 1e-5
    emb_pdrop: Rate = 0.0
    resid_pdrop: Rate = 0.0


_ALWAYS: tuple[tuple[str, object], ...] = (
    ("attn_config.attn_type", "multihead_attention"),
    ("attn_config.prefix_lm", False),
    ("attn_config.qk_ln", False),
    ("attn_config.alibi", True),
    ("logit_scale", None),
    ("no_bias", True),
)
"""Keys that the first models' own code read and transformers does not, with the value that both compute alike."""


def _read(keys: MptKeys, weights: Weights) -> ModelConfig:
    equal_heads(keys, "d_model", "n_heads")
    for place, value in _ALWAYS:
        if (found := attrgetter(place)(keys)) != value:
            raise ConfigError(
                f"{place} is {shown(repr(found))} in config.json: an MPT is read only where it is {value}"
            )
    attention, norm = keys.attn_config, NormSpec(eps=keys.layer_norm_epsilon, bias=False)
    residual = ResidualSpec(before=norm, dropout=attention.attn_pdrop)
    layer = LayerSpec(
        attention=multi_head(
            keys.d_model,
            keys.n_heads,
            mask=CAUSAL,
            position=AlibiPositions(max_bias=attention.alibi_bias_max),
            scale=attention.softmax_scale or (keys.d_model // keys.n_heads) ** -0.5,
            clip=attention.clip_qkv or None,
            query_bias=False,
            key_bias=False,
            value_bias=False,
            output_bias=False,
            dropout=attention.attn_pdrop,
        ),
        attention_residual=residual,
        feed_forward=FeedForwardSpec(d_hidden=4 * keys.d_model, activation="gelu", bias=False),
        feed_forward_residual=residual,
    )
    decoder = StackConfig(
        d_model=keys.d_model,
        embedding=TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.d_model, dropout=keys.emb_pdrop),
        layers=(layer,) * keys.n_layers,
        final_norm=norm,
    )
    return ModelConfig(decoder=decoder, head=_HEADS.read(FAMILY, keys, weights), special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    attention = stack.layers[0].attention
    position = attention.position
    keys = MptKeys(
        **common_keys(config),
        d_model=stack.d_model,
        n_layers=stack.n_layers,
        n_heads=attention.n_heads,
        attn_config=MptAttentionKeys(
            attn_pdrop=_whole(attention.dropout),
            clip_qkv=attention.clip,
            softmax_scale=attention.scale,
            alibi_bias_max=_whole(position.max_bias) if isinstance(position, AlibiPositions) else 8,
        ),
        layer_norm_epsilon=stack.final_norm.eps if stack.final_norm else 1e-5,
        emb_pdrop=stack.tokens.dropout,
    )
    return foreign(FAMILY, keys, config)


def _whole(value: float) -> float:
    """The value as a whole number where it is one: transformers takes no others for two of the keys."""
    return int(value) if value == int(value) else value


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "blocks.{i}", "decoder.layers.{i}"
    return (
        *_HEADS.rows(config.head),
        row(f"{theirs}.norm_1.weight", f"{ours}.attention_residual.before.weight"),
        row(f"{theirs}.attn.Wqkv.weight", *(f"{ours}.attention.{part}.weight" for part in ("query", "key", "value"))),
        row(f"{theirs}.attn.out_proj.weight", f"{ours}.attention.output.weight"),
        row(f"{theirs}.norm_2.weight", f"{ours}.feed_forward_residual.before.weight"),
        row(f"{theirs}.ffn.up_proj.weight", f"{ours}.feed_forward.input.weight"),
        row(f"{theirs}.ffn.down_proj.weight", f"{ours}.feed_forward.output.weight"),
        row("norm_f.weight", "decoder.final_norm.weight"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size("wte.weight", 0),
        "d_model": weights.size("wte.weight", 1),
        "n_layers": weights.n_layers("blocks.{i}.norm_1.weight") or None,
    }


FAMILY = Family(
    key="mpt",
    label="MPT",
    model_types=("mpt",),
    architectures=architectures("Mpt", "sequence_classes", "token_classes", "answer_span"),
    keys=MptKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "n_layers",
        "n_heads": "n_heads",
        "d_model": "d_model",
        "vocab_size": "vocab_size",
        "max_length": "max_seq_len",
        "eps": "layer_norm_epsilon",
    },
    names=NameTable(rows=_rows, prefixes=("transformer.",), roots=_HEADS.roots),
    aliases={"hidden_size": "d_model", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"},
    markers=(r"(transformer\.)?blocks\.0\.attn\.Wqkv\.weight", r"(transformer\.)?blocks\.0\.ffn\.up_proj\.weight"),
)
