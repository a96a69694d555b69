"""Tiny whole models of every arrangement, with weights large enough that attention is far from flat."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from core_model.config import (
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
    ResidualSpec,
    SinusoidalPositions,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.nn.transformer import Transformer
from core_model.trace import Trace
from tests.core_model.attention_cases import fill

D_MODEL, N_HEADS, VOCAB, MAX_LENGTH = 16, 4, 29, 64
CAUSAL = MaskSpec(causal=True)
PRE_NORM = ResidualSpec(before=NormSpec())
ATTENTION_KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "alibi": {"position": AlibiPositions()},
    "buckets": {"position": BucketedPositions(bidirectional=False)},
    "window": {"mask": MaskSpec(causal=True, window=50)},
    "capped": {"soft_cap": 5.0},
    "sinks": {"sinks": True},
}
"""What sets an attention apart from the plain causal one."""


def layer(attention: AttentionSpec, *, cross: AttentionSpec | None = None, dropout: float = 0.0) -> LayerSpec:
    """A pre-norm layer around an attention."""
    residual = replace(PRE_NORM, dropout=dropout)
    return LayerSpec(
        attention=attention,
        attention_residual=residual,
        cross_attention=cross,
        cross_residual=residual,
        feed_forward=FeedForwardSpec(d_hidden=2 * D_MODEL, activation="gelu"),
        feed_forward_residual=residual,
    )


def stack(*layers: LayerSpec, learned_positions: bool = False) -> StackConfig:
    """Layers over embedded tokens, with sinusoidal or learned positions."""
    return StackConfig(
        d_model=D_MODEL,
        embedding=TokenEmbedding(vocab_size=VOCAB, d_embedding=D_MODEL, n_types=2),
        layers=layers,
        position=LearnedPositions(max_length=MAX_LENGTH) if learned_positions else SinusoidalPositions(),
        final_norm=NormSpec(),
    )


def decoder_stack(attention: AttentionSpec | None = None, n_layers: int = 2) -> StackConfig:
    """The stack of a language model; its attention is causal unless said otherwise."""
    return stack(*[layer(attention or multi_head(D_MODEL, N_HEADS, mask=CAUSAL))] * n_layers)


def decoder_only(attention: AttentionSpec | None = None, n_layers: int = 2) -> ModelConfig:
    """A language model around `decoder_stack`."""
    return ModelConfig(
        decoder=decoder_stack(attention, n_layers),
        head=HeadSpec(n_outputs=VOCAB, task="language_model", tied=True),
    )


def encoder_only(attention: AttentionSpec | None = None, n_layers: int = 2) -> ModelConfig:
    """A masked language model over learned positions."""
    attention = attention or multi_head(D_MODEL, N_HEADS)
    return ModelConfig(
        encoder=stack(*[layer(attention)] * n_layers, learned_positions=True),
        head=HeadSpec(n_outputs=VOCAB, task="masked_language_model", bias=True),
    )


def encoder_decoder(decoder_attention: AttentionSpec | None = None, n_layers: int = 2) -> ModelConfig:
    """A translation model with one more layer in its decoder than in its encoder."""
    both_ways = multi_head(D_MODEL, N_HEADS)
    decoder_attention = decoder_attention or multi_head(D_MODEL, N_HEADS, mask=CAUSAL)
    return ModelConfig(
        encoder=stack(*[layer(both_ways)] * n_layers),
        decoder=stack(*[layer(decoder_attention, cross=both_ways)] * (n_layers + 1)),
        head=HeadSpec(n_outputs=VOCAB, task="language_model", tied=True),
        shared_embedding=True,
    )


def logits_of(trace: Trace) -> np.ndarray:
    """The logits of a trace whose model has a head."""
    assert trace.logits is not None
    return trace.logits


def make(config: ModelConfig, seed: int = 0) -> Any:
    """The Transformer of a config with random weights, in eval mode; Any, as tests reach into its optional parts."""
    model = Transformer(config).eval()
    fill(model, seed)
    return model
