"""GPT-Neo (Black et al. 2021): GPT-2 with scores that are not scaled, and a window in every second layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
from core_model.checkpoint.families.fields import Count, Positive, Rate, activation, activation_name
from core_model.checkpoint.wording import shown
from core_model.config import (
    FeedForwardSpec,
    LayerSpec,
    LearnedPositions,
    MaskSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import ConfigError

_HEADS = DecoderHeads(table="wte.weight")
_GLOBAL, _LOCAL = "global", "local"


@dataclass(frozen=True, kw_only=True)
class GptNeoKeys(DecoderKeys):
    """The keys of config.json that decide what is computed. `attention_types` are (kinds, how many times) in turn."""

    max_position_embeddings: Count
    hidden_size: Count
    num_layers: Count
    num_heads: Count
    attention_types: list[tuple[list[str], Count]] = field(default_factory=lambda: [([_GLOBAL, _LOCAL], 12)])
    intermediate_size: Count | None = None
    window_size: Count = 256
    activation_function: str = "gelu_new"
    layer_norm_epsilon: Positive = 1e-5
    embed_dropout: Rate = 0.0
    attention_dropout: Rate = 0.0
    resid_dropout: Rate = 0.0


def _read(keys: GptNeoKeys, weights: Weights) -> ModelConfig:
    equal_heads(keys, "hidden_size", "num_heads")
    norm = NormSpec(eps=keys.layer_norm_epsilon)
    residual = ResidualSpec(before=norm, dropout=keys.resid_dropout)
    masks = {_GLOBAL: CAUSAL, _LOCAL: MaskSpec(causal=True, window=keys.window_size)}
    layers = tuple(
        LayerSpec(
            attention=multi_head(
                keys.hidden_size,
                keys.num_heads,
                mask=masks[kind],
                scale=1.0,
                query_bias=False,
                key_bias=False,
                value_bias=False,
                dropout=keys.attention_dropout,
            ),
            attention_residual=residual,
            feed_forward=FeedForwardSpec(
                d_hidden=keys.intermediate_size or 4 * keys.hidden_size,
                activation=activation("activation_function", keys.activation_function),
            ),
            feed_forward_residual=residual,
        )
        for kind in _kinds(keys)
    )
    decoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.hidden_size, dropout=keys.embed_dropout),
        position=LearnedPositions(max_length=keys.max_position_embeddings),
        layers=layers,
        final_norm=norm,
    )
    return ModelConfig(decoder=decoder, head=_HEADS.read(FAMILY, keys, weights), special=keys.special)


def _kinds(keys: GptNeoKeys) -> list[str]:
    """The kind of every layer's attention; ConfigError unless there is one a layer."""
    n_kinds = sum(len(kinds) * times for kinds, times in keys.attention_types)
    if n_kinds != keys.num_layers:
        raise ConfigError(
            f"attention_types gives {n_kinds} layers and num_layers is {keys.num_layers} in config.json: "
            "they must be the same"
        )
    found = [kind for kinds, times in keys.attention_types for kind in kinds * times]
    if unknown := [kind for kind in found if kind not in (_GLOBAL, _LOCAL)]:
        raise ConfigError(
            f"attention_types has {shown(repr(unknown[0]))} in config.json: expected {_GLOBAL} or {_LOCAL}"
        )
    return found


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    layer, position = stack.layers[0], stack.position
    windows = [each.attention.mask.window for each in stack.layers]
    keys = GptNeoKeys(
        **common_keys(config),
        max_position_embeddings=position.max_length if isinstance(position, LearnedPositions) else 1,
        hidden_size=stack.d_model,
        num_layers=stack.n_layers,
        num_heads=layer.attention.n_heads,
        attention_types=[([_GLOBAL if window is None else _LOCAL for window in windows], 1)],
        intermediate_size=layer.feed_forward.d_hidden,
        window_size=next((window for window in windows if window is not None), 256),
        activation_function=activation_name(layer.feed_forward.activation),
        layer_norm_epsilon=stack.final_norm.eps if stack.final_norm else 1e-5,
        embed_dropout=stack.tokens.dropout,
        attention_dropout=layer.attention.dropout,
        resid_dropout=layer.attention_residual.dropout,
    )
    return foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "h.{i}", "decoder.layers.{i}"
    return (
        *_HEADS.rows(config.head),
        row("wpe.weight", "decoder.position.weight"),
        row(f"{theirs}.ln_1.*", f"{ours}.attention_residual.before.*"),
        row(f"{theirs}.attn.attention.q_proj.*", f"{ours}.attention.query.*"),
        row(f"{theirs}.attn.attention.k_proj.*", f"{ours}.attention.key.*"),
        row(f"{theirs}.attn.attention.v_proj.*", f"{ours}.attention.value.*"),
        row(f"{theirs}.attn.attention.out_proj.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.ln_2.*", f"{ours}.feed_forward_residual.before.*"),
        row(f"{theirs}.mlp.c_fc.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.mlp.c_proj.*", f"{ours}.feed_forward.output.*"),
        row("ln_f.*", "decoder.final_norm.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size("wte.weight", 0),
        "hidden_size": weights.size("wte.weight", 1),
        "max_position_embeddings": weights.size("wpe.weight", 0),
        "num_layers": weights.n_layers("h.{i}.ln_1.weight") or None,
        "intermediate_size": weights.size("h.0.mlp.c_fc.weight", 0),
    }


FAMILY = Family(
    key="gpt_neo",
    label="GPT-Neo",
    model_types=("gpt_neo",),
    architectures=architectures("GPTNeo", "sequence_classes", "token_classes", "answer_span"),
    keys=GptNeoKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "num_layers",
        "n_heads": "num_heads",
        "d_model": "hidden_size",
        "d_hidden": "intermediate_size",
        "vocab_size": "vocab_size",
        "max_length": "max_position_embeddings",
        "activation": "activation_function",
        "eps": "layer_norm_epsilon",
    },
    names=NameTable(
        rows=_rows,
        prefixes=("transformer.",),
        roots=_HEADS.roots,
        buffers=(r"h\.\d+\.attn\.attention\.(masked_)?bias",),
    ),
    aliases={"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"},
    markers=(r"(transformer\.)?wpe\.weight", r"(transformer\.)?h\.0\.attn\.attention\.q_proj\.weight"),
)
