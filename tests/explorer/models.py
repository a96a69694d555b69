"""Small models with random, seeded weights, saved as run folders at test time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core_model.config import (
    AttentionSpec,
    FeedForwardSpec,
    HeadSpec,
    LayerSpec,
    LearnedPositions,
    MaskSpec,
    ModelConfig,
    NormSpec,
    PatchEmbedding,
    ResidualSpec,
    SpecialTokens,
    StackConfig,
    TokenEmbedding,
    VectorSpec,
    VectorsSpec,
    multi_head,
)

N_LAYERS, N_HEADS, MAX_LENGTH = 2, 3, 3000
_WIDTH = 24
_ALPHABET = "abcdefghijklmnopqrstuvwxyz ."
_PAD, _START, _END = "<pad>", "<start>", "<end>"


def save_decoder(folder: Path) -> Path:
    """A causal language model of characters."""
    decoder = _stack(multi_head(_WIDTH, N_HEADS, mask=MaskSpec(causal=True)))
    return _save(folder, ModelConfig(decoder=decoder, head=HeadSpec(n_outputs=_VOCABULARY, task="language_model")))


def save_encoder(folder: Path, *, with_tokenizer: bool = True) -> Path:
    """An encoder that reads pairs."""
    config = ModelConfig(encoder=_stack(multi_head(_WIDTH, N_HEADS), n_types=2))
    return _save(folder, config, with_tokenizer=with_tokenizer)


def save_encoder_decoder(folder: Path) -> Path:
    """A decoder that reads an encoder."""
    cross = multi_head(_WIDTH, N_HEADS)
    config = ModelConfig(
        encoder=_stack(multi_head(_WIDTH, N_HEADS)),
        decoder=_stack(multi_head(_WIDTH, N_HEADS, mask=MaskSpec(causal=True)), cross=cross),
        head=HeadSpec(n_outputs=_VOCABULARY, task="language_model"),
        special=SpecialTokens(padding=0, decoder_start=1, end=2),
    )
    return _save(folder, config)


def save_picture_encoder(folder: Path) -> Path:
    """An encoder of 8 x 8 pixels in squares of 4."""
    stack = _stack(multi_head(_WIDTH, N_HEADS))
    embedding = PatchEmbedding(image_size=(8, 8), patch_size=(4, 4))
    return _save(folder, ModelConfig(encoder=replace(stack, embedding=embedding, position=None)), with_tokenizer=False)


def save_towers(folder: Path) -> Path:
    """A tower of text and one of 8 x 8 pixels, whose vectors are compared."""
    text, vision = _stack(multi_head(_WIDTH, N_HEADS)), _stack(multi_head(_WIDTH, N_HEADS))
    patches = PatchEmbedding(image_size=(8, 8), patch_size=(4, 4))
    vectors = VectorsSpec(text=VectorSpec(pooling="last"), vision=VectorSpec(pooling="first"), compared=True, bias=True)
    vision = replace(vision, embedding=patches, position=None)
    return _save(folder, ModelConfig(text=text, vision=vision, vectors=vectors))


_VOCABULARY = len(_ALPHABET) + 3


def _stack(attention: AttentionSpec, *, cross: AttentionSpec | None = None, n_types: int = 0) -> StackConfig:
    residual = ResidualSpec(before=NormSpec())
    layer = LayerSpec(
        attention=attention,
        attention_residual=residual,
        feed_forward=FeedForwardSpec(d_hidden=2 * _WIDTH),
        feed_forward_residual=residual,
        cross_attention=cross,
        cross_residual=residual,
    )
    return StackConfig(
        d_model=_WIDTH,
        embedding=TokenEmbedding(vocab_size=_VOCABULARY, d_embedding=_WIDTH, n_types=n_types),
        position=LearnedPositions(max_length=MAX_LENGTH),
        layers=(layer,) * N_LAYERS,
        final_norm=NormSpec(),
    )


def _save(folder: Path, config: ModelConfig, *, with_tokenizer: bool = True) -> Path:
    """Weights of unit scale, so that no attention is flat."""
    import torch

    from core_model.checkpoint.native import save_run_model
    from core_model.nn.transformer import Transformer
    from core_model.tokenize.native import CharacterTokenizer

    model = Transformer(config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.6)
    tokenizer = CharacterTokenizer(_ALPHABET, special=(_PAD, _START, _END))
    save_run_model(folder, model, tokenizer if with_tokenizer else None, {})
    return folder
