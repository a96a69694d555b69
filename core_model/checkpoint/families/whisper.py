"""Whisper (Radford et al. 2022): an encoder of sound, and a decoder of its text. Keys have no bias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families.fairseq import (
    ALIASES,
    PLACES,
    STACK_SIZES,
    EncoderDecoderKeys,
    read_layer,
    special_and_start_keys,
    stack_keys,
    stack_places,
    stack_rows,
)
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count
from core_model.checkpoint.families.plan import Plan, read_plan
from core_model.config import AudioEmbedding, EmbeddingSpec, HeadSpec, LearnedPositions, ModelConfig, StackConfig
from core_model.errors import ConfigError

_TABLE, _OUTPUT = "decoder.embed_tokens.weight", "proj_out.weight"


@dataclass(frozen=True, kw_only=True)
class WhisperKeys(EncoderDecoderKeys):
    """The keys of config.json that decide what is computed."""

    num_mel_bins: Count
    max_source_positions: Count
    max_target_positions: Count


def _read(keys: WhisperKeys, weights: Weights) -> ModelConfig:
    sound = AudioEmbedding(n_features=keys.num_mel_bins, dropout=keys.dropout)
    encoder, decoder = (
        read_plan(keys, stack_places(name), vocab_size=keys.vocab_size, embedding_dropout=keys.dropout)
        for name in ("encoder", "decoder")
    )
    return ModelConfig(
        encoder=_stack(keys, encoder, sound, keys.max_source_positions),
        decoder=_stack(keys, decoder, decoder.embedding(), keys.max_target_positions),
        head=_head(keys, weights),
        special=keys.special,
    )


def _stack(keys: WhisperKeys, plan: Plan, embedding: EmbeddingSpec, max_length: int) -> StackConfig:
    reads_sound = isinstance(embedding, AudioEmbedding)
    layer = read_layer(keys, plan, plan.residual(), is_decoder=not reads_sound, key_bias=False)
    return plan.stack([layer] * plan.n_layers, embedding=embedding, position=LearnedPositions(max_length=max_length))


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
    keys = WhisperKeys(
        **stack_keys(encoder, decoder),
        **special_and_start_keys(config.special),
        vocab_size=decoder.tokens.vocab_size,
        num_mel_bins=encoder.embedding.n_features,
        max_source_positions=encoder.max_length or 1500,
        max_target_positions=decoder.max_length or 448,
        tie_word_embeddings=head.tied if head else None,
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
    return {
        **STACK_SIZES(weights),
        "vocab_size": weights.size(_TABLE, 0),
        "d_model": weights.size(_TABLE, 1),
        "num_mel_bins": weights.size("encoder.conv1.weight", 1),
        "max_source_positions": weights.size("encoder.embed_positions.weight", 0),
        "max_target_positions": weights.size("decoder.embed_positions.weight", 0),
    }


FAMILY = Family(
    key="whisper",
    label="Whisper",
    model_types=("whisper",),
    architectures={"WhisperModel": None, "WhisperForConditionalGeneration": "language_model"},
    keys=WhisperKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={**PLACES, "max_length": "max_target_positions"},
    names=NameTable(rows=_rows, prefixes=("model.",), roots=("proj_out.",), unused=(r"proj_out\..*",)),
    aliases=ALIASES,
    layer_counts=("decoder_layers",),
)
