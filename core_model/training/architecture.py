"""The model of a training, from its settings: the article's parts unless they say otherwise. No torch here."""

from __future__ import annotations

from core_model.config import (
    AbsolutePositions,
    AlibiPositions,
    AttentionSpec,
    BucketedPositions,
    FeedForwardSpec,
    HeadSpec,
    LayerSpec,
    LearnedPositions,
    MaskSpec,
    ModelConfig,
    NormSpec,
    RelativePositions,
    ResidualSpec,
    RotaryPositions,
    SinusoidalPositions,
    SpecialTokens,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.training.settings import TrainingSettings
from core_model.training.tasks import TASKS


def model_config(
    settings: TrainingSettings, *, vocab_size: int, max_length: int, special: SpecialTokens
) -> ModelConfig:
    """The model that `settings` describe, for data with that vocabulary and no input longer than `max_length` tokens.

    Token tables of encoder and decoder and the output map are one matrix (Vaswani et al. 2017, section 3.4).
    """
    encoder_decoder = TASKS[settings.task].encoder_decoder
    decoder = _stack(settings, vocab_size, max_length, causal=True, reads_encoder=encoder_decoder)
    return ModelConfig(
        encoder=_stack(settings, vocab_size, max_length, causal=False) if encoder_decoder else None,
        decoder=decoder,
        head=HeadSpec(n_outputs=vocab_size, task="language_model", tied=True),
        shared_embedding=encoder_decoder,
        special=special,
    )


def _stack(
    settings: TrainingSettings, vocab_size: int, max_length: int, *, causal: bool, reads_encoder: bool = False
) -> StackConfig:
    position = _absolute_positions(settings, max_length)
    learned = isinstance(position, LearnedPositions)
    return StackConfig(
        d_model=settings.d_model,
        embedding=TokenEmbedding(
            vocab_size=vocab_size,
            d_embedding=settings.d_model,
            # Learned positions start as small as the tokens; sqrt(d_model) makes the tokens as large as fixed sines.
            scale=1.0 if learned else settings.d_model**0.5,
            dropout=settings.dropout,
        ),
        layers=tuple(
            _layer(settings, layer, causal=causal, reads_encoder=reads_encoder) for layer in range(settings.n_layers)
        ),
        position=position,
        final_norm=NormSpec() if settings.norm == "pre" else None,
    )


def _layer(settings: TrainingSettings, layer: int, *, causal: bool, reads_encoder: bool) -> LayerSpec:
    residual = _residual(settings)
    cross = multi_head(settings.d_model, settings.n_heads, dropout=settings.dropout) if reads_encoder else None
    return LayerSpec(
        attention=_self_attention(settings, layer, causal=causal),
        attention_residual=residual,
        cross_attention=cross,
        cross_residual=residual if reads_encoder else ResidualSpec(),
        feed_forward=FeedForwardSpec(d_hidden=settings.d_hidden, dropout=settings.dropout),
        feed_forward_residual=residual,
    )


def _residual(settings: TrainingSettings) -> ResidualSpec:
    norm = NormSpec()
    if settings.norm == "pre":
        return ResidualSpec(before=norm, dropout=settings.dropout)
    return ResidualSpec(total=norm, dropout=settings.dropout)


def _self_attention(settings: TrainingSettings, layer: int, *, causal: bool) -> AttentionSpec:
    return multi_head(
        settings.d_model,
        settings.n_heads,
        mask=MaskSpec(causal=causal),
        position=_relative_positions(settings, layer, causal=causal),
        dropout=settings.dropout,
    )


def _absolute_positions(settings: TrainingSettings, max_length: int) -> AbsolutePositions | None:
    if settings.positions == "learned":
        return LearnedPositions(max_length=max_length)
    return SinusoidalPositions() if settings.positions == "sinusoidal" else None


def _relative_positions(settings: TrainingSettings, layer: int, *, causal: bool) -> RelativePositions | None:
    if settings.positions == "rotary":
        return RotaryPositions(n_rotated=settings.d_model // settings.n_heads)
    if settings.positions == "alibi":
        return AlibiPositions()
    if settings.positions == "bucketed":
        return BucketedPositions(bidirectional=not causal, from_layer=None if layer == 0 else 0)
    return None
