"""Marian: post-norm, halved sinusoids, scaled embeddings, a bias of the logits."""

from __future__ import annotations

import torch
from transformers import MarianConfig, MarianMTModel, PreTrainedModel

from core_model.config import (
    FeedForwardSpec,
    HeadSpec,
    LayerSpec,
    MaskSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    SinusoidalPositions,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from tests.core_model.references.family import (
    CAUSAL,
    FF,
    HEADS,
    LAYERS,
    LENGTH,
    VOCAB,
    D,
    Family,
    Weights,
    renamed,
)


def marian_weights(theirs: Weights) -> Weights:
    table = {"model.shared": "encoder.embedding.token"}
    for stack in ("encoder", "decoder"):
        theirs_i, ours_i = f"model.{stack}.layers.{{i}}", f"{stack}.layers.{{i}}"
        kinds = [("self_attn", "attention")] + ([("encoder_attn", "cross_attention")] if stack == "decoder" else [])
        for kind, attention in kinds:
            for letter, part in zip(("q", "k", "v", "out"), ("query", "key", "value", "output"), strict=True):
                table[f"{theirs_i}.{kind}.{letter}_proj"] = f"{ours_i}.{attention}.{part}"
            residual = attention.replace("attention", "residual") if attention != "attention" else "attention_residual"
            table[f"{theirs_i}.{kind}_layer_norm"] = f"{ours_i}.{residual}.total"
        table[f"{theirs_i}.fc1"] = f"{ours_i}.feed_forward.input"
        table[f"{theirs_i}.fc2"] = f"{ours_i}.feed_forward.output"
        table[f"{theirs_i}.final_layer_norm"] = f"{ours_i}.feed_forward_residual.total"
    return renamed(theirs, table) | {"head.output.bias": theirs["final_logits_bias"][0]}


def marian_model() -> PreTrainedModel:
    model = MarianMTModel._from_config(
        MarianConfig(
            vocab_size=VOCAB,
            d_model=D,
            encoder_layers=LAYERS,
            decoder_layers=LAYERS,
            encoder_attention_heads=HEADS,
            decoder_attention_heads=HEADS,
            encoder_ffn_dim=FF,
            decoder_ffn_dim=FF,
            max_position_embeddings=LENGTH,
            scale_embedding=True,
            activation_function="silu",
            pad_token_id=VOCAB - 1,
            decoder_start_token_id=VOCAB - 1,
            eos_token_id=0,
        ),
        attn_implementation="eager",
    )
    model.final_logits_bias.normal_(generator=torch.Generator().manual_seed(0))
    return model


def marian_stack(mask: MaskSpec, *, cross: bool) -> StackConfig:
    residual = ResidualSpec(total=NormSpec())
    layer = LayerSpec(
        attention=multi_head(D, HEADS, mask=mask),
        attention_residual=residual,
        cross_attention=multi_head(D, HEADS) if cross else None,
        cross_residual=residual,
        feed_forward=FeedForwardSpec(d_hidden=FF, activation="silu"),
        feed_forward_residual=residual,
    )
    return StackConfig(
        d_model=D,
        embedding=TokenEmbedding(vocab_size=VOCAB, d_embedding=D, scale=D**0.5),
        position=SinusoidalPositions(layout="halves"),
        layers=(layer,) * LAYERS,
    )


MARIAN = Family(
    theirs=marian_model,
    config=ModelConfig(
        encoder=marian_stack(MaskSpec(), cross=False),
        decoder=marian_stack(CAUSAL, cross=True),
        head=HeadSpec(n_outputs=VOCAB, task="language_model", tied=True, bias=True),
        shared_embedding=True,
    ),
    copied=marian_weights,
    gain=2.0,
)
