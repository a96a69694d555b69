"""The models of the measurements: 12 layers of 12 heads, width 768, random weights; ours and the reference's alike."""

from __future__ import annotations

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from core_model.config import (
    AttentionSpec,
    FeedForwardSpec,
    HeadSpec,
    LayerSpec,
    LearnedPositions,
    MaskSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    RotaryPositions,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.nn.transformer import Transformer

VOCAB_SIZE, D_MODEL, N_HEADS, N_KEY_HEADS, N_LAYERS, MAX_LENGTH = 1000, 768, 12, 4, 12, 4096
HEAD_SIZE = D_MODEL // N_HEADS


def gpt2(device: torch.device) -> Transformer:
    """Learned positions, LayerNorm, every query head with its own keys."""
    norm = NormSpec()
    return _model(
        multi_head(D_MODEL, N_HEADS, mask=MaskSpec(causal=True)),
        FeedForwardSpec(d_hidden=4 * D_MODEL, activation="gelu_tanh"),
        norm,
        device,
        position=LearnedPositions(max_length=MAX_LENGTH),
    )


def llama(device: torch.device) -> Transformer:
    """Rotary positions, RMSNorm, gated feed-forward, three query heads to a key head."""
    return _model(
        grouped_attention(MaskSpec(causal=True)),
        FeedForwardSpec(d_hidden=2048, activation="silu", gated=True, bias=False),
        NormSpec(kind="rms"),
        device,
    )


def grouped_attention(mask: MaskSpec) -> AttentionSpec:
    """12 query heads over 4 key heads of size 64, rotary."""
    return AttentionSpec(
        n_heads=N_HEADS,
        n_key_heads=N_KEY_HEADS,
        head_size=HEAD_SIZE,
        scale=HEAD_SIZE**-0.5,
        mask=mask,
        position=RotaryPositions(n_rotated=HEAD_SIZE),
        query_bias=False,
        key_bias=False,
        value_bias=False,
        output_bias=False,
    )


def reference_gpt2(attention: str, device: torch.device) -> GPT2LMHeadModel:
    """transformers' GPT-2 of the same sizes; attention is "sdpa" or "eager"."""
    config = GPT2Config(vocab_size=VOCAB_SIZE, n_positions=MAX_LENGTH, n_embd=D_MODEL, n_layer=N_LAYERS, n_head=N_HEADS)
    config._attn_implementation = attention
    model = GPT2LMHeadModel(config).eval()
    torch.nn.Module.to(model, device)
    return model


def reference_llama(attention: str, device: torch.device) -> LlamaForCausalLM:
    """transformers' Llama of the same sizes."""
    config = LlamaConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=D_MODEL,
        intermediate_size=2048,
        num_hidden_layers=N_LAYERS,
        num_attention_heads=N_HEADS,
        num_key_value_heads=N_KEY_HEADS,
        max_position_embeddings=MAX_LENGTH,
        tie_word_embeddings=True,
    )
    config._attn_implementation = attention
    model = LlamaForCausalLM(config).eval()
    torch.nn.Module.to(model, device)
    return model


def _model(
    attention: AttentionSpec,
    feed_forward: FeedForwardSpec,
    norm: NormSpec,
    device: torch.device,
    position: LearnedPositions | None = None,
) -> Transformer:
    residual = ResidualSpec(before=norm)
    layer = LayerSpec(
        attention=attention,
        attention_residual=residual,
        feed_forward=feed_forward,
        feed_forward_residual=residual,
    )
    stack = StackConfig(
        d_model=D_MODEL,
        embedding=TokenEmbedding(vocab_size=VOCAB_SIZE, d_embedding=D_MODEL),
        layers=(layer,) * N_LAYERS,
        position=position,
        final_norm=norm,
    )
    head = HeadSpec(n_outputs=VOCAB_SIZE, task="language_model", tied=True)
    return Transformer(ModelConfig(decoder=stack, head=head)).eval().to(device)
