"""ModernBERT (Warner et al. 2024): rotary positions, gated feed-forward, and attention that is mostly local."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import EncoderHeads, HeadForm
from core_model.checkpoint.families.family import QUERY_KEY_VALUE, Weights, name_table, read_sizes, row
from core_model.checkpoint.families.fields import Count, Positive, Rate, TextKeys, activation_name
from core_model.checkpoint.families.plan import USUAL_PLACES, Plan, read_plan, usual_norm
from core_model.checkpoint.families.rotary import RopeKeys, read_rotary, write_rotary
from core_model.checkpoint.families.windows import layer_windows, window_keys
from core_model.config import LayerSpec, MaskSpec, ModelConfig, NormSpec, Pooling, RotaryPositions, StackConfig
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
_PLACES = {
    **USUAL_PLACES,
    "activation": "hidden_activation",
    "eps": "norm_eps",
    "embedding_dropout": "embedding_dropout",
    "residual_dropout": "attention_dropout",
    "attention_dropout": "attention_dropout",
}


@dataclass(frozen=True, kw_only=True)
class ModernBertKeys(TextKeys):
    """The keys of config.json that decide what is computed."""

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


def _read(keys: ModernBertKeys) -> StackConfig:
    norm = NormSpec(eps=keys.norm_eps, bias=keys.norm_bias)
    plan = read_plan(keys, _PLACES, mask=MaskSpec(), norm=norm, bias=keys.attention_bias, gated=True)
    every = keys.global_attn_every_n_layers
    windows = layer_windows(keys, keys.layer_types, keys.local_attention // 2, lambda i: i % every != 0)
    layers = [_layer(keys, plan, window) for window in windows]
    first = replace(layers[0], attention_residual=plan.residual(before=None))
    return plan.stack([first, *layers[1:]], embedding=plan.embedding(norm=norm))


def _layer(keys: ModernBertKeys, plan: Plan, window: int | None) -> LayerSpec:
    return plan.layer(
        attention=plan.attention(mask=MaskSpec(window=window), position=_position(keys, plan.head_size, window)),
        feed_forward=plan.feed_forward(bias=keys.mlp_bias, dropout=keys.mlp_dropout),
        feed_forward_residual=plan.residual(dropout=0.0),
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


def _with_head(config: ModelConfig, keys: ModernBertKeys, weights: Weights) -> ModelConfig:
    """The model with the biases and the pooling that the keys give its head."""
    head = config.head
    if head is None or head.transform is None:
        return config
    head = replace(head, transform=replace(head.transform, bias=keys.classifier_bias))
    if head.task == "masked_language_model":
        head = replace(head, bias=keys.decoder_bias)
    if head.task == "sequence_classes":
        if keys.classifier_pooling not in _POOLINGS:
            raise ConfigError(
                f"classifier_pooling is {shown(repr(keys.classifier_pooling))} in config.json: expected cls or mean"
            )
        head = replace(head, pooling=_POOLINGS[keys.classifier_pooling])
    return replace(config, head=head)


def _further_keys(config: ModelConfig) -> dict[str, Any]:
    layer, head, windows = config.output_stack.layers[0], config.head, window_keys(config)
    transform = head.transform if head else None
    return {
        "norm_bias": usual_norm(config.output_stack).bias,
        "attention_bias": layer.attention.query_bias,
        "mlp_bias": layer.feed_forward.bias,
        "mlp_dropout": layer.feed_forward.dropout,
        "decoder_bias": bool(head and head.bias),
        "classifier_bias": bool(transform and transform.bias),
        "classifier_activation": activation_name(transform.activation) if transform else "gelu",
        "classifier_pooling": "mean" if head and head.pooling == "mean" else "cls",
        "layer_types": windows["layer_types"],
        "local_attention": 2 * (windows["sliding_window"] or 64),
        **_rope_keys(config),
    }


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


_LAYER = {
    "attn_norm.*": "attention_residual.before.*",
    "attn.Wqkv.*": QUERY_KEY_VALUE,
    "attn.Wo.*": "attention.output.*",
    "mlp_norm.*": "feed_forward_residual.before.*",
    "mlp.Wi.*": ("feed_forward.gate.*", "feed_forward.input.*"),
    "mlp.Wo.*": "feed_forward.output.*",
}

FAMILY = encoders.encoder_family(
    _HEADS,
    _read,
    _further_keys,
    finish=_with_head,
    key="modernbert",
    label="ModernBERT",
    architectures=encoders.architectures("ModernBert", ForMultipleChoice="sequence_classes"),
    keys=ModernBertKeys,
    sizes=read_sizes(
        {
            "vocab_size": (_TABLE, 0),
            "hidden_size": (_TABLE, 1),
            "intermediate_size": ("layers.0.mlp.Wo.weight", 1),
        },
        num_hidden_layers="layers.{i}.attn.Wqkv.weight",
    ),
    places=_PLACES,
    names=name_table(
        _HEADS,
        row("embeddings.norm.*", "encoder.embedding.norm.*"),
        *encoders.encoder_rows(_LAYER, layer="layers.{i}"),
        row("final_norm.*", "encoder.final_norm.*"),
        prefixes=("model.",),
        unused=_HEADS.unused,
    ),
    markers=(r"(model\.)?embeddings\.tok_embeddings\.weight", r"(model\.)?layers\.0\.attn\.Wqkv\.weight"),
)
