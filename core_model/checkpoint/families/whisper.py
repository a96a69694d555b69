"""Whisper (Radford et al. 2022): an encoder of sound, and a decoder of its text. Keys have no bias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import (
    Count,
    Rate,
    TokenId,
    activation,
    activation_name,
    equal_heads,
    special_tokens,
)
from core_model.checkpoint.families.seq2seq import ALIASES, stack_rows
from core_model.config import (
    AttentionSpec,
    AudioEmbedding,
    EmbeddingSpec,
    FeedForwardSpec,
    HeadSpec,
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

_TABLE, _OUTPUT = "decoder.embed_tokens.weight", "proj_out.weight"


@dataclass(frozen=True, kw_only=True)
class WhisperKeys:
    """The keys of config.json that decide what is computed."""

    vocab_size: Count
    num_mel_bins: Count
    d_model: Count
    encoder_layers: Count
    encoder_attention_heads: Count
    encoder_ffn_dim: Count
    decoder_layers: Count
    decoder_attention_heads: Count
    decoder_ffn_dim: Count
    max_source_positions: Count
    max_target_positions: Count
    activation_function: str = "gelu"
    dropout: Rate = 0.0
    attention_dropout: Rate = 0.0
    activation_dropout: Rate = 0.0
    tie_word_embeddings: bool | None = None
    bos_token_id: TokenId = None
    eos_token_id: TokenId = None
    pad_token_id: TokenId = None
    decoder_start_token_id: TokenId = None


def _read(keys: WhisperKeys, weights: Weights) -> ModelConfig:
    tokens = TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.d_model, dropout=keys.dropout)
    sound = AudioEmbedding(n_features=keys.num_mel_bins, dropout=keys.dropout)
    return ModelConfig(
        encoder=_stack(keys, "encoder", sound, keys.max_source_positions),
        decoder=_stack(keys, "decoder", tokens, keys.max_target_positions),
        head=_head(keys, weights),
        special=special_tokens(
            begin=keys.bos_token_id,
            end=keys.eos_token_id,
            padding=keys.pad_token_id,
            decoder_start=keys.decoder_start_token_id,
        ),
    )


def _stack(keys: WhisperKeys, name: str, embedding: EmbeddingSpec, max_length: int) -> StackConfig:
    is_decoder = name == "decoder"
    residual = ResidualSpec(before=NormSpec(), dropout=keys.dropout)
    layer = LayerSpec(
        attention=_attention(keys, name, MaskSpec(causal=is_decoder)),
        attention_residual=residual,
        cross_attention=_attention(keys, name, MaskSpec()) if is_decoder else None,
        cross_residual=residual if is_decoder else ResidualSpec(),
        feed_forward=FeedForwardSpec(
            d_hidden=getattr(keys, f"{name}_ffn_dim"),
            activation=activation("activation_function", keys.activation_function),
            dropout=keys.activation_dropout,
        ),
        feed_forward_residual=residual,
    )
    return StackConfig(
        d_model=keys.d_model,
        embedding=embedding,
        position=LearnedPositions(max_length=max_length),
        layers=(layer,) * getattr(keys, f"{name}_layers"),
        final_norm=NormSpec(),
    )


def _attention(keys: WhisperKeys, stack: str, mask: MaskSpec) -> AttentionSpec:
    heads = f"{stack}_attention_heads"
    equal_heads(keys, "d_model", heads)
    return multi_head(keys.d_model, getattr(keys, heads), mask=mask, key_bias=False, dropout=keys.attention_dropout)


def _head(keys: WhisperKeys, weights: Weights) -> HeadSpec | None:
    task = weights.task(FAMILY, {"language_model": _OUTPUT})
    if task is None:
        return None
    tied = weights.ties(_OUTPUT, _TABLE, stated=keys.tie_word_embeddings, default=FAMILY.tied_by_default)
    return HeadSpec(n_outputs=keys.vocab_size, task="language_model", tied=tied)


def _write(config: ModelConfig) -> Foreign:
    encoder, decoder, head = config.encoder, config.decoder, config.head
    if encoder is None or decoder is None or not isinstance(encoder.embedding, AudioEmbedding):
        raise ConfigError("the model reads no sound: there an encoder always does")
    layer = encoder.layers[0]
    told: dict[str, Any] = {}
    for name, stack in (("encoder", encoder), ("decoder", decoder)):
        told[f"{name}_layers"] = stack.n_layers
        told[f"{name}_attention_heads"] = stack.layers[0].attention.n_heads
        told[f"{name}_ffn_dim"] = stack.layers[0].feed_forward.d_hidden
    keys = WhisperKeys(
        **told,
        vocab_size=decoder.tokens.vocab_size,
        num_mel_bins=encoder.embedding.n_features,
        d_model=encoder.d_model,
        max_source_positions=encoder.max_length or 1500,
        max_target_positions=decoder.max_length or 448,
        activation_function=activation_name(layer.feed_forward.activation),
        dropout=layer.attention_residual.dropout,
        attention_dropout=layer.attention.dropout,
        activation_dropout=layer.feed_forward.dropout,
        tie_word_embeddings=head.tied if head else None,
        bos_token_id=config.special.begin,
        eos_token_id=config.special.end,
        pad_token_id=config.special.padding,
        decoder_start_token_id=config.special.decoder_start,
    )
    return Foreign(keys=keys, architecture=FAMILY.architecture_for(head.task if head else None))


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    is_tied = config.head is not None and config.head.tied
    return (
        row("encoder.conv1.*", "encoder.embedding.first.*"),
        row("encoder.conv2.*", "encoder.embedding.second.*"),
        row(_TABLE, "decoder.embedding.token.weight", also=(_OUTPUT,) if is_tied else ()),
        *stack_rows("encoder", "before"),
        *stack_rows("decoder", "before"),
        row(_OUTPUT, "head.output.weight"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    told: dict[str, object] = {
        "vocab_size": weights.size(_TABLE, 0),
        "d_model": weights.size(_TABLE, 1),
        "num_mel_bins": weights.size("encoder.conv1.weight", 1),
        "max_source_positions": weights.size("encoder.embed_positions.weight", 0),
        "max_target_positions": weights.size("decoder.embed_positions.weight", 0),
    }
    for stack in ("encoder", "decoder"):
        told[f"{stack}_layers"] = weights.n_layers(f"{stack}.layers.{{i}}.fc1.weight") or None
        told[f"{stack}_ffn_dim"] = weights.size(f"{stack}.layers.0.fc1.weight", 0)
    return told


FAMILY = Family(
    key="whisper",
    label="Whisper",
    model_types=("whisper",),
    architectures={"WhisperModel": None, "WhisperForConditionalGeneration": "language_model"},
    keys=WhisperKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "encoder_layers",
        "n_heads": "encoder_attention_heads",
        "d_model": "d_model",
        "d_hidden": "encoder_ffn_dim",
        "vocab_size": "vocab_size",
        "max_length": "max_target_positions",
        "activation": "activation_function",
    },
    names=NameTable(rows=_rows, prefixes=("model.",), roots=("proj_out.",), unused=(r"proj_out\..*",)),
    aliases=ALIASES,
    layer_counts=("decoder_layers",),
)
