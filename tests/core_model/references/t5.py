"""T5: RMSNorm, no scaling of scores, one table of buckets a stack, none in cross-attention."""

from __future__ import annotations

from transformers import T5Config, T5ForConditionalGeneration

from core_model.config import (
    BucketedPositions,
    FeedForwardSpec,
    HeadSpec,
    MaskSpec,
    ModelConfig,
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


def t5_weights(theirs: Weights) -> Weights:
    table = {
        "shared": "encoder.embedding.token",
        "encoder.final_layer_norm": "encoder.final_norm",
        "decoder.final_layer_norm": "decoder.final_norm",
    }
    for stack, last in (("encoder", 1), ("decoder", 2)):
        theirs_i, ours_i = f"{stack}.block.{{i}}.layer", f"{stack}.layers.{{i}}"
        kinds = [("0.SelfAttention", "attention")]
        kinds += [("1.EncDecAttention", "cross_attention")] if stack == "decoder" else []
        for kind, attention in kinds:
            for letter, part in zip("qkvo", ("query", "key", "value", "output"), strict=True):
                table[f"{theirs_i}.{kind}.{letter}"] = f"{ours_i}.{attention}.{part}"
        table[f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias"] = (
            f"{stack}.layers.0.attention.position_bias"
        )
        table[f"{theirs_i}.0.layer_norm"] = f"{ours_i}.attention_residual.before"
        table[f"{theirs_i}.{last}.layer_norm"] = f"{ours_i}.feed_forward_residual.before"
        table[f"{theirs_i}.{last}.DenseReluDense.wi"] = f"{ours_i}.feed_forward.input"
        table[f"{theirs_i}.{last}.DenseReluDense.wo"] = f"{ours_i}.feed_forward.output"
    table["decoder.block.{i}.layer.1.layer_norm"] = "decoder.layers.{i}.cross_residual.before"
    return renamed(theirs, table)


def t5_stack(mask: MaskSpec, *, bidirectional: bool, cross: bool) -> StackConfig:
    options = {"head_size": 10, "scale": 1.0, **NO_BIAS}
    layers = tuple(
        pre_norm_layer(
            RMS,
            FeedForwardSpec(d_hidden=FF, activation="relu", bias=False),
            attention=multi_head(
                D,
                HEADS,
                mask=mask,
                position=BucketedPositions(bidirectional=bidirectional, from_layer=0 if i else None),
                **options,
            ),
            cross_attention=multi_head(D, HEADS, **options) if cross else None,
        )
        for i in range(LAYERS)
    )
    return StackConfig(
        d_model=D, embedding=TokenEmbedding(vocab_size=VOCAB, d_embedding=D), layers=layers, final_norm=RMS
    )


T5 = Family(
    theirs=eager(
        T5ForConditionalGeneration,
        T5Config(vocab_size=VOCAB, d_model=D, d_kv=10, d_ff=FF, num_layers=LAYERS, num_heads=HEADS),
    ),
    config=ModelConfig(
        encoder=t5_stack(MaskSpec(), bidirectional=True, cross=False),
        decoder=t5_stack(CAUSAL, bidirectional=False, cross=True),
        head=HeadSpec(n_outputs=VOCAB, task="language_model", tied=True, scale=D**-0.5),
        shared_embedding=True,
    ),
    copied=t5_weights,
)
