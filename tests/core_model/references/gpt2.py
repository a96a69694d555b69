"""GPT-2: pre-norm, learned positions, one fused and transposed projection."""

from __future__ import annotations

from transformers import GPT2Config, GPT2LMHeadModel

from core_model.config import (
    FeedForwardSpec,
    HeadSpec,
    LearnedPositions,
    ModelConfig,
    NormSpec,
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
    eager,
    pre_norm_layer,
    renamed,
)


def gpt2_weights(theirs: Weights) -> Weights:
    ours = renamed(
        theirs,
        {
            "transformer.wte": "decoder.embedding.token",
            "transformer.wpe": "decoder.position",
            "transformer.h.{i}.ln_1": "decoder.layers.{i}.attention_residual.before",
            "transformer.h.{i}.ln_2": "decoder.layers.{i}.feed_forward_residual.before",
            "transformer.h.{i}.attn.c_proj": "decoder.layers.{i}.attention.output",
            "transformer.h.{i}.mlp.c_fc": "decoder.layers.{i}.feed_forward.input",
            "transformer.h.{i}.mlp.c_proj": "decoder.layers.{i}.feed_forward.output",
            "transformer.ln_f": "decoder.final_norm",
        },
    )
    for name in [name for name in ours if name.endswith(("output.weight", "input.weight"))]:
        ours[name] = ours[name].T
    for i in range(LAYERS):
        for end in ("weight", "bias"):
            fused = theirs[f"transformer.h.{i}.attn.c_attn.{end}"]
            for part, values in zip(("query", "key", "value"), fused.chunk(3, dim=-1), strict=True):
                ours[f"decoder.layers.{i}.attention.{part}.{end}"] = values.T if end == "weight" else values
    return ours


GPT2 = Family(
    theirs=eager(
        GPT2LMHeadModel,
        GPT2Config(
            vocab_size=VOCAB,
            n_positions=LENGTH,
            n_embd=D,
            n_layer=LAYERS,
            n_head=HEADS,
            n_inner=FF,
            bos_token_id=0,
            eos_token_id=0,
        ),
    ),
    config=ModelConfig(
        decoder=StackConfig(
            d_model=D,
            embedding=TokenEmbedding(vocab_size=VOCAB, d_embedding=D),
            position=LearnedPositions(max_length=LENGTH),
            layers=(
                pre_norm_layer(
                    NormSpec(),
                    FeedForwardSpec(d_hidden=FF, activation="gelu_tanh"),
                    attention=multi_head(D, HEADS, mask=CAUSAL),
                ),
            )
            * LAYERS,
            final_norm=NormSpec(),
        ),
        head=HeadSpec(n_outputs=VOCAB, task="language_model", tied=True),
    ),
    copied=gpt2_weights,
    gain=3.0,
)
