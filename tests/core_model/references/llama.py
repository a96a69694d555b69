"""Llama: rotary halves, grouped queries, RMSNorm, gated SiLU."""

from __future__ import annotations

from transformers import LlamaConfig, LlamaForCausalLM

from core_model.config import (
    FeedForwardSpec,
    HeadSpec,
    ModelConfig,
    RotaryPositions,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from tests.core_model.references.family import (
    CAUSAL,
    FF,
    HEADS,
    LAYERS,
    NO_BIAS,
    RMS,
    VOCAB,
    D,
    Family,
    Weights,
    eager,
    pre_norm_layer,
    renamed,
)


def llama_weights(theirs: Weights) -> Weights:
    return renamed(
        theirs,
        {
            "model.embed_tokens": "decoder.embedding.token",
            "model.layers.{i}.input_layernorm": "decoder.layers.{i}.attention_residual.before",
            "model.layers.{i}.post_attention_layernorm": "decoder.layers.{i}.feed_forward_residual.before",
            "model.layers.{i}.self_attn.q_proj": "decoder.layers.{i}.attention.query",
            "model.layers.{i}.self_attn.k_proj": "decoder.layers.{i}.attention.key",
            "model.layers.{i}.self_attn.v_proj": "decoder.layers.{i}.attention.value",
            "model.layers.{i}.self_attn.o_proj": "decoder.layers.{i}.attention.output",
            "model.layers.{i}.mlp.up_proj": "decoder.layers.{i}.feed_forward.input",
            "model.layers.{i}.mlp.gate_proj": "decoder.layers.{i}.feed_forward.gate",
            "model.layers.{i}.mlp.down_proj": "decoder.layers.{i}.feed_forward.output",
            "model.norm": "decoder.final_norm",
            "lm_head": "head.output",
        },
    )


LLAMA = Family(
    theirs=eager(
        LlamaForCausalLM,
        LlamaConfig(
            vocab_size=VOCAB,
            hidden_size=D,
            intermediate_size=FF,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=2,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        ),
    ),
    config=ModelConfig(
        decoder=StackConfig(
            d_model=D,
            embedding=TokenEmbedding(vocab_size=VOCAB, d_embedding=D),
            layers=(
                pre_norm_layer(
                    RMS,
                    FeedForwardSpec(d_hidden=FF, activation="silu", gated=True, bias=False),
                    attention=multi_head(
                        D,
                        HEADS,
                        mask=CAUSAL,
                        n_key_heads=2,
                        position=RotaryPositions(n_rotated=D // HEADS),
                        **NO_BIAS,
                    ),
                ),
            )
            * LAYERS,
            final_norm=RMS,
        ),
        head=HeadSpec(n_outputs=VOCAB, task="language_model"),
    ),
    copied=llama_weights,
)
