"""Model configs that between them use every kind of part."""

from __future__ import annotations

from dataclasses import replace

from core_model.config import (
    AlibiPositions,
    AttentionPooling,
    AttentionSpec,
    AudioEmbedding,
    BucketedPositions,
    ConvolutionSpec,
    DisentangledPositions,
    DistanceTable,
    ExpertsSpec,
    FeedForwardSpec,
    GridPositions,
    HeadSpec,
    HeadTransform,
    LayerSpec,
    LearnedPositions,
    MaskSpec,
    ModelConfig,
    NormSpec,
    PatchEmbedding,
    QueryKeyNorm,
    ResidualSpec,
    RotaryPositions,
    RotaryScaling,
    SinusoidalPositions,
    SpecialTokens,
    StackConfig,
    TokenEmbedding,
    VectorEmbedding,
    VectorSpec,
    VectorsSpec,
    ZeroedTokens,
    multi_head,
)

WIDTH = 12
_RMS = NormSpec(kind="rms", eps=1e-6, bias=False)
_CAUSAL = MaskSpec(causal=True)


def layer(attention: AttentionSpec, **options: object) -> LayerSpec:
    """A pre-norm layer around an attention."""
    parts = {
        "attention_residual": ResidualSpec(before=NormSpec()),
        "feed_forward": FeedForwardSpec(d_hidden=20),
        "feed_forward_residual": ResidualSpec(before=NormSpec()),
        **options,
    }
    return LayerSpec(attention=attention, **parts)  # pyright: ignore[reportArgumentType]


def stack(*layers: LayerSpec, **options: object) -> StackConfig:
    """A stack of these layers."""
    parts = {"embedding": TokenEmbedding(vocab_size=11, d_embedding=WIDTH), **options}
    return StackConfig(d_model=WIDTH, layers=layers, **parts)  # pyright: ignore[reportArgumentType]


def translator() -> ModelConfig:
    """An encoder-decoder with relative positions, cross attention, shared embeddings and special tokens."""
    shared = replace(multi_head(WIDTH, 3, position=BucketedPositions(n_buckets=8, max_distance=20)), output_bias=False)
    later = replace(shared, position=BucketedPositions(n_buckets=8, max_distance=20, from_layer=0))
    crossing = {"cross_attention": multi_head(WIDTH, 2), "cross_residual": ResidualSpec(total=NormSpec())}
    return ModelConfig(
        encoder=stack(layer(shared), layer(later), position=SinusoidalPositions(layout="halves")),
        decoder=stack(layer(multi_head(WIDTH, 3, mask=_CAUSAL), **crossing), final_norm=NormSpec(bias=False)),
        head=HeadSpec(n_outputs=11, task="language_model", tied=True, bias=True, scale=0.5),
        shared_embedding=True,
        special=SpecialTokens(begin=0, end=1, padding=2, decoder_start=2),
    )


def mixture() -> ModelConfig:
    """Rotary positions of every kind, grouped heads, query-key norms, sinks, experts, windows, sandwich norms."""
    scaling = RotaryScaling(kind="longrope", original_length=8, short_factors=(1.0, 2.0), long_factors=(3.0, 4.0))
    grouped = AttentionSpec(
        n_heads=6,
        n_key_heads=2,
        head_size=4,
        scale=0.5,
        mask=MaskSpec(causal=True, window=5, n_global=1),
        position=RotaryPositions(n_rotated=4, scaling=scaling),
        query_key_norm=QueryKeyNorm(norm=_RMS, over="heads"),
        soft_cap=30.0,
        sinks=True,
        query_bias=False,
    )
    wide = replace(grouped, query_key_norm=QueryKeyNorm(norm=_RMS, over="width"), position=AlibiPositions())
    sandwich = ResidualSpec(before=_RMS, after=replace(_RMS, unit_offset=True), scale=0.5)
    experts = FeedForwardSpec(
        d_hidden=10,
        gated=True,
        bias=False,
        activation="silu",
        experts=ExpertsSpec(n_experts=4, n_active=2, d_shared=7, router_bias=True),
    )
    return ModelConfig(
        decoder=stack(
            layer(grouped, feed_forward=experts, attention_residual=sandwich),
            layer(wide, parallel=True, shared_norm=True, feed_forward_residual=ResidualSpec()),
            final_norm=_RMS,
        ),
        head=HeadSpec(n_outputs=5, task="token_classes", labels=("a", "b", "c", "d", "e"), soft_cap=20.0),
    )


def shared_encoder() -> ModelConfig:
    """One set of weights run three times over a projected embedding with types, and a head with a transform."""
    spec = layer(multi_head(WIDTH, 2))
    return ModelConfig(
        encoder=stack(
            spec,
            spec,
            spec,
            embedding=TokenEmbedding(
                vocab_size=11,
                d_embedding=5,
                n_types=2,
                norm=NormSpec(),
                scale=2.0,
                zeroed=ZeroedTokens(token=3, trained_share=0.25),
            ),
            position=LearnedPositions(max_length=9, offset=2),
            weights_of=(0, 0, 0),
        ),
        head=HeadSpec(
            n_outputs=11,
            task="masked_language_model",
            tied=True,
            bias=True,
            transform=HeadTransform(d_output=5, activation="gelu", norm=NormSpec()),
        ),
    )


def image_classifier() -> ModelConfig:
    """Patches with registers and a norm, learned residual scales, and a head with a norm of two vectors."""
    patches = PatchEmbedding(image_size=(6, 9), patch_size=(2, 3), n_channels=2, n_registers=2, norm=NormSpec())
    scaled = ResidualSpec(before=NormSpec(), learned_scale=True)
    return ModelConfig(
        encoder=stack(
            layer(multi_head(WIDTH, 3), attention_residual=scaled, feed_forward_residual=scaled),
            embedding=patches,
            position=LearnedPositions(max_length=10),
        ),
        head=HeadSpec(n_outputs=3, task="image_classes", pooling="first_and_mean_patches", norm=NormSpec(), bias=True),
    )


def patch_guesser() -> ModelConfig:
    """A table of steps between patches that two layers share, and a head that reads the patches."""
    own = multi_head(WIDTH, 3, position=GridPositions(grid=(2, 3)))
    shared = replace(own, position=GridPositions(grid=(2, 3), from_layer=0))
    return ModelConfig(
        encoder=stack(
            layer(own),
            layer(shared),
            embedding=PatchEmbedding(image_size=(4, 9), patch_size=(2, 3), n_channels=1),
        ),
        head=HeadSpec(n_outputs=7, task="image_tokens", pooling="patches", norm=NormSpec(), bias=True),
    )


def listener() -> ModelConfig:
    """An encoder of sound beside a decoder whose hidden states end narrower."""
    crossing = {"cross_attention": multi_head(WIDTH, 2), "cross_residual": ResidualSpec(before=NormSpec())}
    return ModelConfig(
        encoder=stack(layer(multi_head(WIDTH, 3)), embedding=AudioEmbedding(n_features=5, kernel_size=5)),
        decoder=stack(layer(multi_head(WIDTH, 3, mask=_CAUSAL), **crossing), d_output=7),
    )


def reader() -> ModelConfig:
    """A decoder of vectors beside an encoder that is not part of the model."""
    crossing = {"cross_attention": multi_head(WIDTH, 2), "cross_residual": ResidualSpec(before=NormSpec())}
    return ModelConfig(
        encoder=stack(embedding=VectorEmbedding()),
        decoder=stack(layer(multi_head(WIDTH, 3, mask=_CAUSAL), **crossing), embedding=VectorEmbedding()),
    )


def two_towers() -> ModelConfig:
    """A tower of text, and one that is a lone attention over given vectors."""
    alone = layer(
        multi_head(WIDTH, 2),
        attention_residual=ResidualSpec(skip=False),
        feed_forward=FeedForwardSpec(d_hidden=0),
        feed_forward_residual=ResidualSpec(),
    )
    return ModelConfig(
        text=stack(layer(multi_head(WIDTH, 3, mask=_CAUSAL))), vision=stack(alone, embedding=VectorEmbedding())
    )


def compared_towers() -> ModelConfig:
    """Vectors of a text's end token and of an image pooled by attention, compared with a bias."""
    pooling = AttentionPooling(
        attention=multi_head(WIDTH, 2), norm=NormSpec(), feed_forward=FeedForwardSpec(d_hidden=7)
    )
    return ModelConfig(
        text=stack(layer(multi_head(WIDTH, 3, mask=_CAUSAL))),
        vision=stack(layer(multi_head(WIDTH, 3)), embedding=PatchEmbedding(image_size=(4, 6), patch_size=(2, 2))),
        vectors=VectorsSpec(
            text=VectorSpec(pooling="end", end_token=3, d_output=5),
            vision=VectorSpec(pooling="attention", attention=pooling, norm=NormSpec(), d_output=5, bias=True),
            compared=True,
            bias=True,
        ),
    )


def disentangled() -> ModelConfig:
    """Distances that meet content, normed, and a convolution beside the first layer."""
    position = DisentangledPositions(span=3, max_distance=7, key_bias=False)
    return ModelConfig(
        encoder=stack(
            layer(multi_head(WIDTH, 3, position=position)),
            layer(multi_head(WIDTH, 3, position=replace(position, shared_maps=True))),
            distances=DistanceTable(n_rows=6, norm=NormSpec()),
            convolution=ConvolutionSpec(kernel_size=3, activation="gelu", norm=NormSpec(), n_groups=2),
        ),
        head=HeadSpec(n_outputs=1, task="replaced_tokens", bias=True),
    )


EVERY = {
    make.__name__: make
    for make in (
        translator,
        mixture,
        shared_encoder,
        disentangled,
        image_classifier,
        patch_guesser,
        listener,
        reader,
        two_towers,
        compared_towers,
    )
}
