"""Small seeded models whose attention is not flat, for tests of the analyses."""

from __future__ import annotations

import torch

from core_model.config import (
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
from core_model.nn.transformer import Transformer

LAYER_NORM = NormSpec()
VOCAB_SIZE, D_MODEL, N_HEADS, N_LAYERS, MAX_LENGTH = 19, 24, 3, 2, 400


CAUSAL = MaskSpec(causal=True)


def decoder_only(
    *,
    norm: NormSpec = LAYER_NORM,
    tied: bool = True,
    mask: MaskSpec = CAUSAL,
    max_length: int = MAX_LENGTH,
    seed: int = 0,
) -> Transformer:
    """A pre-norm decoder of 2 layers and 3 heads with large random weights, biases and gains."""
    residual = ResidualSpec(before=norm)
    layer = LayerSpec(
        attention=multi_head(D_MODEL, N_HEADS, mask=mask),
        attention_residual=residual,
        feed_forward=FeedForwardSpec(d_hidden=40, activation="gelu"),
        feed_forward_residual=residual,
    )
    stack = StackConfig(
        d_model=D_MODEL,
        embedding=TokenEmbedding(vocab_size=VOCAB_SIZE, d_embedding=D_MODEL),
        layers=(layer,) * N_LAYERS,
        position=LearnedPositions(max_length=max_length),
        final_norm=norm,
    )
    head = HeadSpec(n_outputs=VOCAB_SIZE, task="language_model", tied=tied, bias=not tied)
    return seeded(ModelConfig(decoder=stack, head=head), seed)


def encoder_only(seed: int = 0) -> Transformer:
    """A post-norm encoder, the article's arrangement."""
    residual = ResidualSpec(total=NormSpec())
    layer = LayerSpec(
        attention=multi_head(D_MODEL, N_HEADS),
        attention_residual=residual,
        feed_forward=FeedForwardSpec(d_hidden=40),
        feed_forward_residual=residual,
    )
    embedding = TokenEmbedding(vocab_size=VOCAB_SIZE, d_embedding=D_MODEL)
    stack = StackConfig(
        d_model=D_MODEL,
        embedding=embedding,
        layers=(layer,) * N_LAYERS,
        position=LearnedPositions(max_length=MAX_LENGTH),
    )
    return seeded(ModelConfig(encoder=stack), seed)


def seeded(config: ModelConfig, seed: int) -> Transformer:
    """A model with every weight drawn from N(0, 0.5), so that attention is far from uniform."""
    model = Transformer(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.5, generator=generator)
    return model
