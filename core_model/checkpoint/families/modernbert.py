"""ModernBERT (Warner et al. 2024): rotary positions, gated feed-forward, and attention that is mostly local."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import EncoderHeads, HeadForm
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import (
    Count,
    Positive,
    Rate,
    SpecialKeys,
    activation,
    activation_name,
    class_names,
    equal_heads,
    special_keys,
)
from core_model.checkpoint.families.rotary import RopeKeys, read_rotary, write_rotary
from core_model.checkpoint.families.windows import layer_windows, window_keys
from core_model.config import (
    FeedForwardSpec,
    HeadSpec,
    LayerSpec,
    MaskSpec,
    ModelConfig,
    NormSpec,
    Pooling,
    ResidualSpec,
    RotaryPositions,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import ConfigError
from core_model.wording import shown

_TABLE = "embeddings.tok_embeddings.weight"
_POOLINGS: dict[str, Pooling] = {"cls": "first", "mean": "mean"}
_GLOBAL_BASE, _LOCAL_BASE = 160000.0, 10000.0
_FORM = HeadForm(transform="head.dense", activation_key="classifier_activation", norm="head.norm", output="classifier")
_HEADS = EncoderHeads(
    table=_TABLE,
    forms={
        "sequence_classes": _FORM,
        "token_classes": _FORM,
        "answer_span": _FORM,
        "masked_language_model": replace(_FORM, output="decoder"),
    },
)


@dataclass(frozen=True, kw_only=True)
class ModernBertKeys(SpecialKeys):
    """The keys of config.json that decide what is computed."""

    vocab_size: Count
    hidden_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    intermediate_size: Count
    max_position_embeddings: Count = 8192
    hidden_activation: str = "gelu"
    norm_eps: Positive = 1e-5
    norm_bias: bool = False
    attention_bias: bool = False
    attention_dropout: Rate = 0.0
    embedding_dropout: Rate = 0.0
    mlp_bias: bool = False
    mlp_dropout: Rate = 0.0
    decoder_bias: bool = True
    classifier_bias: bool = False
    classifier_activation: str = "gelu"
    classifier_pooling: str = "cls"
    layer_types: list[str] | None = None
    global_attn_every_n_layers: Count = 3
    local_attention: Count = 128
    global_rope_theta: Positive | None = None
    local_rope_theta: Positive | None = None
    rope_scaling: RopeKeys | None = None
    rope_parameters: RopeKeys | None = None
    tie_word_embeddings: bool | None = None
    id2label: dict[str, str] | None = None

    @property
    def norm(self) -> NormSpec:
        """Every norm of the model."""
        return NormSpec(eps=self.norm_eps, bias=self.norm_bias)


def _read(keys: ModernBertKeys, weights: Weights) -> ModelConfig:
    head_size = equal_heads(keys, "hidden_size", "num_attention_heads")
    every = keys.global_attn_every_n_layers
    windows = layer_windows(keys, keys.layer_types, keys.local_attention // 2, lambda i: i % every != 0)
    layers = [_layer(keys, window, _position(keys, head_size, window)) for window in windows]
    first = replace(layers[0], attention_residual=replace(layers[0].attention_residual, before=None))
    encoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=TokenEmbedding(
            vocab_size=keys.vocab_size,
            d_embedding=keys.hidden_size,
            norm=keys.norm,
            dropout=keys.embedding_dropout,
        ),
        layers=(first, *layers[1:]),
        final_norm=keys.norm,
    )
    return ModelConfig(
        encoder=encoder,
        head=_read_head(keys, weights),
        special=keys.special,
    )


def _layer(keys: ModernBertKeys, window: int | None, position: RotaryPositions) -> LayerSpec:
    biases = {f"{part}_bias": keys.attention_bias for part in ("query", "key", "value", "output")}
    return LayerSpec(
        attention=multi_head(
            keys.hidden_size,
            keys.num_attention_heads,
            mask=MaskSpec(window=window),
            position=position,
            dropout=keys.attention_dropout,
            **biases,
        ),
        attention_residual=ResidualSpec(before=keys.norm, dropout=keys.attention_dropout),
        feed_forward=FeedForwardSpec(
            d_hidden=keys.intermediate_size,
            activation=activation("hidden_activation", keys.hidden_activation),
            gated=True,
            bias=keys.mlp_bias,
            dropout=keys.mlp_dropout,
        ),
        feed_forward_residual=ResidualSpec(before=keys.norm),
    )


def _position(keys: ModernBertKeys, head_size: int, window: int | None) -> RotaryPositions:
    """The positions of local or of global layers, each with a base of its own."""
    of_kind = keys.rope_parameters or RopeKeys()
    if window is None:
        rope, theta = of_kind.full_attention, keys.global_rope_theta or _GLOBAL_BASE
    else:
        rope, theta = of_kind.sliding_attention, keys.local_rope_theta or _LOCAL_BASE
    return read_rotary(
        rope or keys.rope_scaling, head_size=head_size, theta=theta, max_length=keys.max_position_embeddings
    )


def _read_head(keys: ModernBertKeys, weights: Weights) -> HeadSpec | None:
    head = _HEADS.read(FAMILY, keys, weights, d_model=keys.hidden_size, norm=keys.norm)
    if head is None or head.transform is None:
        return head
    head = replace(head, transform=replace(head.transform, bias=keys.classifier_bias))
    if head.task == "sequence_classes":
        if keys.classifier_pooling not in _POOLINGS:
            raise ConfigError(
                f"classifier_pooling is {shown(repr(keys.classifier_pooling))} in config.json: expected cls or mean"
            )
        return replace(head, pooling=_POOLINGS[keys.classifier_pooling])
    return replace(head, bias=keys.decoder_bias) if head.task == "masked_language_model" else head


def _write(config: ModelConfig) -> Foreign:
    stack, head = config.output_stack, config.head
    layer, norm = stack.layers[0], stack.final_norm
    windows = window_keys(config)
    transform = head.transform if head else None
    keys = ModernBertKeys(
        vocab_size=stack.tokens.vocab_size,
        hidden_size=stack.d_model,
        num_hidden_layers=stack.n_layers,
        num_attention_heads=layer.attention.n_heads,
        intermediate_size=layer.feed_forward.d_hidden,
        hidden_activation=activation_name(layer.feed_forward.activation),
        norm_eps=norm.eps if norm else 1e-5,
        norm_bias=bool(norm and norm.bias),
        attention_bias=layer.attention.query_bias,
        attention_dropout=layer.attention.dropout,
        embedding_dropout=stack.tokens.dropout,
        mlp_bias=layer.feed_forward.bias,
        mlp_dropout=layer.feed_forward.dropout,
        decoder_bias=bool(head and head.bias),
        classifier_bias=bool(transform and transform.bias),
        classifier_activation=activation_name(transform.activation) if transform else "gelu",
        classifier_pooling="mean" if head and head.pooling == "mean" else "cls",
        layer_types=windows["layer_types"],
        local_attention=2 * (windows["sliding_window"] or 64),
        **_rope_keys(config),
        tie_word_embeddings=head.tied if head and head.task == "masked_language_model" else None,
        id2label=class_names(head),
        **special_keys(config.special),
    )
    return encoders.foreign(FAMILY, keys, config)


def _rope_keys(config: ModelConfig) -> dict[str, Any]:
    """The positions of both kinds of layers, in both dialects; of a kind without layers the usual."""
    kinds = {
        layer.attention.mask.window is None: write_rotary(layer.attention.position)
        for layer in config.output_stack.layers
        if isinstance(layer.attention.position, RotaryPositions)
    }
    full = kinds.get(True, RopeKeys(rope_type="default", rope_theta=_GLOBAL_BASE))
    local = kinds.get(False, RopeKeys(rope_type="default", rope_theta=_LOCAL_BASE))
    return {
        "max_position_embeddings": full.original_max_position_embeddings or 8192,  # rotary positions have no last one
        "global_rope_theta": full.rope_theta,
        "local_rope_theta": local.rope_theta,
        "rope_parameters": RopeKeys(full_attention=full, sliding_attention=local),
    }


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "layers.{i}", "encoder.layers.{i}"
    fused = (f"{ours}.attention.{part}.*" for part in ("query", "key", "value"))
    return (
        *_HEADS.rows(config.head),
        row("embeddings.norm.*", "encoder.embedding.norm.*"),
        row(f"{theirs}.attn_norm.*", f"{ours}.attention_residual.before.*"),
        row(f"{theirs}.attn.Wqkv.*", *fused),
        row(f"{theirs}.attn.Wo.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.mlp_norm.*", f"{ours}.feed_forward_residual.before.*"),
        row(f"{theirs}.mlp.Wi.*", f"{ours}.feed_forward.gate.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.mlp.Wo.*", f"{ours}.feed_forward.output.*"),
        row("final_norm.*", "encoder.final_norm.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size(_TABLE, 0),
        "hidden_size": weights.size(_TABLE, 1),
        "num_hidden_layers": weights.n_layers("layers.{i}.attn.Wqkv.weight") or None,
        "intermediate_size": weights.size("layers.0.mlp.Wo.weight", 1),
    }


FAMILY = Family(
    key="modernbert",
    label="ModernBERT",
    model_types=("modernbert",),
    architectures={
        **encoders.architectures("ModernBert"),
        "ModernBertForMultipleChoice": "sequence_classes",
    },
    keys=ModernBertKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "d_model": "hidden_size",
        "d_hidden": "intermediate_size",
        "vocab_size": "vocab_size",
        "max_length": "max_position_embeddings",
        "activation": "hidden_activation",
        "eps": "norm_eps",
    },
    names=NameTable(rows=_rows, prefixes=("model.",), roots=_HEADS.roots, unused=_HEADS.unused),
    markers=(r"(model\.)?embeddings\.tok_embeddings\.weight", r"(model\.)?layers\.0\.attn\.Wqkv\.weight"),
)
