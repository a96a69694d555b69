"""Descriptions that contradict themselves are refused when they are made, naming field, value and limit."""

import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from core_model.config import (
    AlibiPositions,
    AttentionPooling,
    AttentionSpec,
    AudioEmbedding,
    BucketedPositions,
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
    ResidualSpec,
    RotaryPositions,
    RotaryScaling,
    SinusoidalPositions,
    StackConfig,
    TokenEmbedding,
    VectorEmbedding,
    VectorSpec,
    VectorsSpec,
    multi_head,
)
from core_model.errors import ConfigError
from core_model.trace.edits import AblateHead, ReplacePattern

ATTENTION = {"n_heads": 4, "n_key_heads": 2, "head_size": 8, "scale": 0.5}
LAYER = LayerSpec(
    attention=multi_head(16, 4),
    attention_residual=ResidualSpec(),
    feed_forward=FeedForwardSpec(d_hidden=32),
    feed_forward_residual=ResidualSpec(),
)
CROSSING = replace(LAYER, cross_attention=multi_head(16, 4))
EMBEDDING = TokenEmbedding(vocab_size=10, d_embedding=16)
PATCHES = {"image_size": (4, 6), "patch_size": (2, 2)}
STACK = StackConfig(d_model=16, embedding=EMBEDDING, layers=(LAYER, LAYER))
READER = replace(STACK, layers=(CROSSING, LAYER))
GIVEN = replace(STACK, embedding=VectorEmbedding(), layers=())
TIED = HeadSpec(n_outputs=10, task="language_model", tied=True)
BUCKETS = replace(LAYER, attention=multi_head(16, 4, position=BucketedPositions()))
REGISTERED = PatchEmbedding(image_size=(4, 6), patch_size=(2, 2), n_registers=1)
STEPPING = replace(LAYER, attention=multi_head(16, 4, position=GridPositions(grid=(2, 3))))
LONGROPE = RotaryScaling(kind="longrope", original_length=8, short_factors=(1.0, 2.0), long_factors=(1.0, 2.0))


def borrowing(**changes) -> LayerSpec:
    """A layer that uses the table of layer 0."""
    return replace(LAYER, attention=multi_head(16, 4, position=BucketedPositions(from_layer=0, **changes)))


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (NormSpec, {"eps": 0.0}, "eps is 0.0: .* above 0"),
        (NormSpec, {"eps": float("nan")}, "eps is nan: .* finite"),
        (SinusoidalPositions, {"base": -1.0}, "base is -1.0: .* above 0"),
        (SinusoidalPositions, {"offset": -1}, "offset is -1: .* at least 0"),
        (LearnedPositions, {"max_length": 0}, "max_length is 0: .* at least 1"),
        (LearnedPositions, {"max_length": 4, "offset": 1.5}, "offset is 1.5: .* whole number"),
        (RotaryPositions, {"n_rotated": 7}, "n_rotated is 7: .* even"),
        (RotaryPositions, {"n_rotated": 0}, "n_rotated is 0: .* at least 2"),
        (RotaryPositions, {"n_rotated": 4, "base": float("inf")}, "base is inf"),
        (RotaryScaling, {"kind": "yarn"}, "original_length is 0: .* at least 1"),
        (RotaryScaling, {"kind": "linear", "factor": 0}, "factor is 0: .* above 0"),
        (
            RotaryScaling,
            {"kind": "llama3", "original_length": 8, "low_frequency_factor": 4.0},
            "high_frequency_factor is 4.0: .* above low_frequency_factor, 4.0",
        ),
        (
            RotaryPositions,
            {"n_rotated": 6, "scaling": LONGROPE},
            "short_factors has 2 entries: .* each of 3 pairs",
        ),
        (
            RotaryPositions,
            {"n_rotated": 4, "scaling": replace(LONGROPE, long_factors=())},
            "long_factors has 0 entries: .* each of 2 pairs",
        ),
        (
            RotaryPositions,
            {"n_rotated": 2, "scaling": RotaryScaling(kind="dynamic", original_length=8)},
            "n_rotated is 2: dynamic",
        ),
        (
            RotaryPositions,
            {"n_rotated": 4, "base": 1.0, "scaling": RotaryScaling(kind="yarn", original_length=8)},
            "base is 1: .*yarn",
        ),
        (NormSpec, {"eps": 1e39}, "eps is 1e\\+39: .* at most 3.4e\\+38"),
        (AlibiPositions, {"max_bias": 0}, "max_bias is 0"),
        (GridPositions, {"grid": (0, 3)}, "grid is .0, 3.: .* at least 1"),
        (BucketedPositions, {"n_buckets": 3}, "n_buckets is 3: .* at least 4"),
        (BucketedPositions, {"n_buckets": 1, "bidirectional": False}, "n_buckets is 1: .* at least 2"),
        (BucketedPositions, {"max_distance": 8}, "max_distance is 8: .* at least 9"),
        (BucketedPositions, {"max_distance": 16, "bidirectional": False}, "max_distance is 16: .* at least 17"),
        (MaskSpec, {"window": 0}, "window is 0: .* at least 1"),
        (MaskSpec, {"n_global": -1}, "n_global is -1: .* at least 0"),
        (MaskSpec, {"n_prefix": True}, "n_prefix is True: .* whole number"),
        (AttentionSpec, ATTENTION | {"n_key_heads": 3}, "n_heads is 4 and n_key_heads is 3: .* multiple"),
        (AttentionSpec, ATTENTION | {"n_heads": 0}, "n_heads is 0: .* at least 1"),
        (AttentionSpec, ATTENTION | {"head_size": -8}, "head_size is -8: .* at least 1"),
        (AttentionSpec, ATTENTION | {"scale": 0.0}, "scale is 0.0: .* above 0"),
        (AttentionSpec, ATTENTION | {"soft_cap": 0.0}, "soft_cap is 0.0: .* above 0"),
        (AttentionSpec, ATTENTION | {"clip": -1.0}, "clip is -1.0: .* above 0"),
        (AttentionSpec, ATTENTION | {"dropout": 1.0}, "dropout is 1.0: .* below 1"),
        (AttentionSpec, ATTENTION | {"position": RotaryPositions(n_rotated=10)}, "n_rotated is 10: .* only 8"),
        (AttentionSpec, ATTENTION | {"sinks": True, "normalizer": "relu"}, "sinks is True: .* normalizer is 'relu'"),
        (
            AttentionSpec,
            ATTENTION | {"position": AlibiPositions(rounded=True)},
            "position.rounded is true: .* causal mask only",
        ),
        (ExpertsSpec, {"n_experts": 2, "n_active": 3}, "n_active is 3: there are only 2 experts"),
        (ExpertsSpec, {"n_experts": 0, "n_active": 1}, "n_experts is 0: .* at least 1"),
        (FeedForwardSpec, {"d_hidden": -1}, "d_hidden is -1: .* at least 0"),
        (FeedForwardSpec, {"d_hidden": 4, "dropout": -0.1}, "dropout is -0.1: .* at least 0"),
        (ResidualSpec, {"scale": 0}, "scale is 0: .* above 0"),
        (ResidualSpec, {"dropout": "a lot"}, "dropout is 'a lot'"),
        (TokenEmbedding, {"vocab_size": 0, "d_embedding": 4}, "vocab_size is 0: .* at least 1"),
        (TokenEmbedding, {"vocab_size": 5, "d_embedding": 4, "scale": -2.0}, "scale is -2.0: .* above 0"),
        (PatchEmbedding, PATCHES | {"patch_size": (0, 2)}, r"patch_size is \(0, 2\): .* at least 1"),
        (PatchEmbedding, PATCHES | {"image_size": (4,)}, r"image_size is \(4,\): .* two whole numbers"),
        (PatchEmbedding, PATCHES | {"patch_size": (5, 2)}, r"patch_size is \(5, 2\): .* holds no such patch"),
        (PatchEmbedding, PATCHES | {"n_registers": -1}, "n_registers is -1: .* at least 0"),
        (AudioEmbedding, {"n_features": 5, "kernel_size": 4}, "kernel_size is 4: it must be odd"),
        (HeadSpec, {"n_outputs": 0, "task": "language_model"}, "n_outputs is 0: .* at least 1"),
        (HeadSpec, {"n_outputs": 5, "task": "language_model", "soft_cap": 0}, "soft_cap is 0: .* above 0"),
    ],
)
def test_a_value_outside_its_limits_is_named_with_them(make, given, message):
    with pytest.raises(ConfigError, match=message):
        make(**given)


@pytest.mark.parametrize(
    ("base", "changes", "message"),
    [
        (
            CROSSING,
            {"cross_attention": multi_head(16, 4, mask=MaskSpec(causal=True))},
            "cross_attention has the mask 'causal'",
        ),
        (
            CROSSING,
            {"cross_attention": multi_head(16, 4, position=AlibiPositions())},
            "cross_attention .* AlibiPositions",
        ),
        (CROSSING, {"parallel": True}, "parallel is True: a layer with cross_attention"),
        (STACK, {"layers": ()}, "layers is empty: .* at least one layer"),
        (STACK, {"d_model": 0}, "d_model is 0: .* at least 1"),
        (STACK, {"weights_of": (0,)}, r"weights_of is \(0,\): .* each of the 2 layers"),
        (STACK, {"weights_of": (1, 1)}, r"weights_of is \(1, 1\): .* itself or an earlier one"),
        (STACK, {"layers": (LAYER,) * 3, "weights_of": (0, 0, 1)}, r"weights_of is \(0, 0, 1\): .* weights of its own"),
        (STACK, {"layers": (LAYER, CROSSING), "weights_of": (0, 0)}, r"weights_of\[1\] is 0: layers 1 and 0 .* same"),
        (STACK, {"layers": (STEPPING,)}, r"position.grid is \(2, 3\): .* need an image"),
        (
            replace(STACK, embedding=REGISTERED),
            {"layers": (STEPPING,)},
            r"position.grid is \(2, 3\): the image has \(2, 3\) patches, behind 2 tokens",
        ),
        (STACK, {"layers": (LAYER, borrowing())}, r"from_layer of layer 1 is 0: .* one of \[\]"),
        (STACK, {"layers": (BUCKETS, borrowing(n_buckets=8))}, r"from_layer of layer 1 is 0: .* the same buckets"),
        (ModelConfig(encoder=STACK), {"encoder": None}, "neither an encoder nor a decoder"),
        (ModelConfig(encoder=STACK), {"encoder": GIVEN}, "encoder.layers is empty: only an encoder beside a decoder"),
        (ModelConfig(encoder=STACK, decoder=READER), {"decoder": GIVEN}, "decoder.layers is empty"),
        (ModelConfig(vision=STACK), {"vision": GIVEN}, "vision.layers is empty"),
        (ModelConfig(encoder=STACK), {"decoder": STACK}, "the decoder has no cross_attention"),
        (ModelConfig(encoder=STACK), {"encoder": READER}, "the encoder has cross_attention: only a decoder"),
        (ModelConfig(decoder=STACK), {"decoder": READER}, "the decoder has cross_attention, but there is no encoder"),
        (
            ModelConfig(encoder=STACK, decoder=READER),
            {"encoder": replace(STACK, embedding=replace(EMBEDDING, vocab_size=11)), "shared_embedding": True},
            r"shared_embedding is True: .* one size, not \[\(11, 16\), \(10, 16\)\]",
        ),
        (ModelConfig(decoder=STACK, head=TIED), {"decoder": replace(STACK, d_output=5)}, "decoder.d_output is 5: only"),
        (ModelConfig(encoder=replace(STACK, d_output=5)), {"decoder": READER}, "encoder.d_output is 5: only hidden"),
        (STACK, {"d_output": 0}, "d_output is 0: .* at least 1"),
        (
            ModelConfig(decoder=STACK),
            {"head": replace(TIED, n_outputs=9)},
            "head.n_outputs is 9: .* one output a token, 10",
        ),
        (
            ModelConfig(decoder=STACK),
            {"head": replace(TIED, transform=HeadTransform(d_output=12, activation="gelu"))},
            "head.tied is True: its input is 12 wide, but token vectors are 16 wide",
        ),
    ],
)
def test_parts_that_do_not_go_together_are_named(base, changes, message):
    with pytest.raises(ConfigError, match=message):
        replace(base, **changes)


HEAD = {"site": "decoder.self", "layer": 0, "head": 0}


@pytest.mark.parametrize(
    ("record", "name", "value"),
    [
        (NormSpec(), "kind", "batch"),
        (multi_head(8, 2), "normalizer", "sigmoid"),
        (SinusoidalPositions(), "layout", "interleave"),
        (FeedForwardSpec(d_hidden=8), "activation", "swish"),
        (HeadSpec(n_outputs=3, task="sequence_classes"), "task", "tagging"),
        (HeadTransform(d_output=3, activation="tanh"), "activation", "mish"),
        (AblateHead(**HEAD), "by", "zeros"),
        (ReplacePattern(**HEAD, pattern="identity"), "pattern", "first_token"),
    ],
)
def test_a_word_that_stands_for_no_choice_is_refused_and_not_taken_for_another(record, name, value):
    with pytest.raises(ConfigError, match=f"{name} is '{value}': it must be one of '"):
        replace(record, **{name: value})


def test_a_norm_that_a_parallel_layer_would_never_run_is_refused():
    layer = STACK.layers[0]
    with pytest.raises(ConfigError, match=r"parallel is True: .* no total norm"):
        replace(layer, parallel=True, attention_residual=replace(layer.attention_residual, total=NormSpec()))


def test_layers_of_different_numbers_of_heads_are_refused_as_no_picture_has_them_in_rows():
    other = replace(STACK.layers[0], attention=multi_head(STACK.d_model, 1))
    assert other.attention.n_heads != STACK.layers[0].attention.n_heads
    with pytest.raises(ConfigError, match=r"n_heads is \[\d+, 1\] layer by layer: all layers must have as many"):
        replace(STACK, layers=(STACK.layers[0], other))


@pytest.mark.parametrize(("d_model", "n_heads"), [(10, 3), (0, 1), (8, 0)])
def test_a_width_that_heads_do_not_divide_is_named(d_model, n_heads):
    with pytest.raises(ConfigError, match=f"d_model is {d_model} and n_heads is {n_heads}: .* multiple"):
        multi_head(d_model, n_heads)


def test_the_article_scales_scores_by_one_over_the_root_of_the_head_size():
    """Vaswani et al. 2017, eq. 1 and section 3.2.2: d_model 512, 8 heads of 64."""
    spec = multi_head(512, 8)
    assert (spec.head_size, spec.n_key_heads, spec.d_query, spec.d_key) == (64, 8, 512, 512)
    assert spec.scale == 1 / 8


def test_grouped_queries_make_keys_and_values_narrower():
    spec = multi_head(512, 8, n_key_heads=2)
    assert (spec.d_query, spec.d_key) == (512, 128)


@pytest.mark.parametrize(
    ("mask", "label"),
    [
        (MaskSpec(), "full"),
        (MaskSpec(causal=True), "causal"),
        (MaskSpec(causal=True, window=4096), "causal, window 4096"),
        (MaskSpec(window=256, n_global=1), "symmetric, window 256, 1 global"),
        (MaskSpec(causal=True, n_prefix=3), "causal, prefix 3"),
    ],
)
def test_a_mask_is_said_in_words(mask, label):
    assert mask.label == label


def test_attention_layers_are_listed_by_site():
    config = ModelConfig(encoder=STACK, decoder=READER)
    assert {site: len(layers) for site, layers in config.attention_layers().items()} == {
        "encoder.self": 2,
        "decoder.self": 2,
        "decoder.cross": 1,
    }
    assert list(ModelConfig(decoder=STACK).attention_layers()) == ["decoder.self"]


def test_shared_layers_name_whose_weights_they_use():
    shared = replace(STACK, weights_of=(0, 0))
    assert [shared.weights_index(layer) for layer in range(2)] == [0, 0]
    assert [STACK.weights_index(layer) for layer in range(2)] == [0, 1]


def test_positions_of_patches_are_as_many_as_class_tokens_and_patches_of_one_image():
    patches = PatchEmbedding(image_size=(4, 9), patch_size=(2, 3), n_registers=3)
    seeing = replace(STACK, embedding=patches, position=LearnedPositions(max_length=7))
    assert patches.n_tokens(patches.image_size) == 10
    with pytest.raises(ConfigError, match=r"position\.max_length is 8: .* one image take 7"):
        replace(seeing, position=LearnedPositions(max_length=8))


def test_a_stack_that_reads_no_tokens_says_what_it_reads():
    for embedding, what in ((VectorEmbedding(), "vectors"), (AudioEmbedding(n_features=5), "audio features")):
        with pytest.raises(ConfigError, match=f"the model reads {what}: it has no token ids"):
            _ = replace(STACK, embedding=embedding).tokens


def test_towers_stand_beside_each_other_and_nothing_else():
    towers = ModelConfig(text=STACK, vision=replace(STACK, embedding=VectorEmbedding()))
    assert list(towers.attention_layers()) == ["text.self", "vision.self"]
    assert towers.output_stack == STACK
    with pytest.raises(ConfigError, match=r"a tower .* beside an encoder or a decoder"):
        replace(towers, encoder=STACK)
    with pytest.raises(ConfigError, match="the text has cross_attention"):
        replace(towers, text=READER)


POOLING = AttentionPooling(attention=multi_head(16, 2), norm=NormSpec(), feed_forward=FeedForwardSpec(d_hidden=8))
FIRST, MAPPED = VectorSpec(pooling="first"), VectorSpec(pooling="last", d_output=5)


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (VectorSpec, {"pooling": "attention"}, "pooling is 'attention': attention must be given"),
        (VectorSpec, {"pooling": "first", "attention": POOLING}, "pooling is 'first': .* only there"),
        (VectorSpec, {"pooling": "last", "d_output": 0}, "d_output is 0: .* at least 1"),
        (VectorSpec, {"pooling": "end", "end_token": -1}, "end_token is -1: .* at least 0"),
        (VectorsSpec, {}, "vectors has none"),
        (VectorsSpec, {"text": FIRST, "compared": True}, "vectors.compared is True: .* of a text and that of an image"),
        (VectorsSpec, {"text": FIRST, "bias": True}, "vectors.bias is True: .* compared is False"),
        (ModelConfig, {"text": STACK, "vectors": VectorsSpec(vision=FIRST)}, "vectors.vision .* no tower of vision"),
        (
            ModelConfig,
            {"text": STACK, "vision": STACK, "vectors": VectorsSpec(text=FIRST, vision=MAPPED, compared=True)},
            "vectors are 16 and 5 wide",
        ),
        (
            ModelConfig,
            {
                "text": STACK,
                "vision": STACK,
                "vectors": VectorsSpec(text=FIRST, vision=FIRST, compared=True),
                "head": TIED,
            },
            "head is language_model: a model whose vectors are compared has no other output",
        ),
    ],
)
def test_vectors_are_of_towers_there_are_and_compared_where_they_can_be(make: Any, given: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        make(**given)


def test_the_attention_that_pools_a_tower_is_a_site_of_its_own():
    pooled = VectorSpec(pooling="attention", attention=POOLING)
    config = ModelConfig(text=STACK, vision=STACK, vectors=VectorsSpec(text=FIRST, vision=pooled))
    assert list(config.attention_layers()) == ["text.self", "vision.self", "vision.pool"]
    assert config.attention_layers()["vision.pool"] == (POOLING.attention,)


def test_only_learned_positions_have_an_end():
    assert replace(STACK, position=LearnedPositions(max_length=512)).max_length == 512
    assert replace(STACK, position=SinusoidalPositions()).max_length is None


def test_records_are_frozen_and_equal_by_value():
    assert multi_head(16, 4) == multi_head(16, 4)
    assert hash(ModelConfig(decoder=STACK)) == hash(ModelConfig(decoder=STACK))
    with pytest.raises(FrozenInstanceError):
        STACK.d_model = 8  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("module", ["config", "errors", "sites", "results", "trace", "cancel"])
def test_what_the_window_imports_brings_no_torch(module):
    code = f"import sys, core_model.{module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
