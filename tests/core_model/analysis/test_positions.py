"""Expected: Vaswani et al. 2017 (3.5), Su et al. 2021 (eq. 15), Press et al. 2022, Raffel et al. 2020."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from core_model.analysis.positions import position_encoding
from core_model.config import (
    AlibiPositions,
    BucketedPositions,
    DisentangledPositions,
    DistanceTable,
    FeedForwardSpec,
    GridPositions,
    LayerSpec,
    LearnedPositions,
    MaskSpec,
    ModelConfig,
    NormSpec,
    PatchEmbedding,
    ResidualSpec,
    RotaryPositions,
    SinusoidalPositions,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import TraceError
from core_model.nn.transformer import Transformer

D_MODEL, N_HEADS = 8, 2


def model_with(absolute: Any = None, *relative: Any, causal: bool = True) -> Any:
    layers = tuple(
        LayerSpec(
            attention=multi_head(D_MODEL, N_HEADS, mask=MaskSpec(causal=causal), position=position),
            attention_residual=ResidualSpec(),
            feed_forward=FeedForwardSpec(d_hidden=8),
            feed_forward_residual=ResidualSpec(),
        )
        for position in (relative or (None,))
    )
    embedding = TokenEmbedding(vocab_size=5, d_embedding=D_MODEL)
    stack = StackConfig(d_model=D_MODEL, embedding=embedding, layers=layers, position=absolute)
    torch.manual_seed(0)
    return Transformer(ModelConfig(decoder=stack))


def encoding(model: Any, layer: int, n_positions: int) -> Any:
    return position_encoding(model, "decoder", layer, n_positions)


def test_sinusoidal_table_is_the_articles():
    found = encoding(model_with(SinusoidalPositions()), 0, 3)
    assert found.kind == "sinusoidal" and found.bias is None
    for position in range(3):
        for i in range(D_MODEL):
            angle = position / 10000 ** ((i - i % 2) / D_MODEL)
            expected = math.cos(angle) if i % 2 else math.sin(angle)
            assert found.table[position, i] == pytest.approx(expected, abs=1e-6)
    assert found.dimensions[:3] == ("0 sin", "1 cos", "2 sin")


def test_sinusoidal_halves_are_named_in_their_order():
    found = encoding(model_with(SinusoidalPositions(layout="halves")), 0, 2)
    assert found.dimensions == ("0 sin", "1 sin", "2 sin", "3 sin", "4 cos", "5 cos", "6 cos", "7 cos")
    assert found.table[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize("width", [6, 7])
def test_a_dimension_is_named_for_what_it_is(layout, width):
    """At position 0 a sine is 0 and a cosine 1; the last dimension of fairseq's odd width stays 0 everywhere."""
    spec = SinusoidalPositions(layout=layout, endpoint=True)
    embedding = TokenEmbedding(vocab_size=5, d_embedding=width)
    stack = replace(model_with(spec).config.decoder, d_model=width, embedding=embedding)
    found = encoding(Transformer(ModelConfig(decoder=stack)), 0, 2)
    kinds = {(True, False): " sin", (False, False): " cos", (True, True): ""}
    expected = [f"{i}{kinds[tuple(column == 0)]}" for i, column in enumerate(found.table.T)]
    assert list(found.dimensions) == expected


def test_learned_table_is_the_models_own_cut_to_its_rows():
    model = model_with(LearnedPositions(max_length=4, offset=2))
    found = encoding(model, 0, 100)
    assert found.kind == "learned"
    np.testing.assert_array_equal(found.table, model.decoder.position.weight[2:6].detach().numpy())


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_rotary_gives_cosine_and_sine_of_each_pairs_angle(layout):
    found = encoding(model_with(None, RotaryPositions(n_rotated=4, layout=layout)), 0, 6)
    pairs = [(0, 2), (1, 3)] if layout == "halves" else [(0, 1), (2, 3)]
    for position in range(6):
        for number, (first, second) in enumerate(pairs):
            angle = position * 10000 ** (-2 * number / 4)
            assert found.table[position, first] == pytest.approx(math.cos(angle), abs=1e-6)
            assert found.table[position, second] == pytest.approx(math.sin(angle), abs=1e-6)
            assert (found.dimensions[first][-3:], found.dimensions[second][-3:]) == ("cos", "sin")


def test_alibi_penalty_is_linear_in_distance_with_slope_2_to_the_minus_8h_over_n():
    found = encoding(model_with(None, AlibiPositions()), 0, 5)
    assert found.distances.tolist() == [-4, -3, -2, -1, 0]
    for head, slope in enumerate((2**-4, 2**-8)):
        assert found.bias[head].tolist() == [-slope * distance for distance in (4, 3, 2, 1, 0)]


def test_bucketed_bias_is_the_table_of_the_layer_that_owns_it_both_ways():
    spec = {"n_buckets": 32, "max_distance": 128, "bidirectional": True}
    model = model_with(None, BucketedPositions(**spec), BucketedPositions(**spec, from_layer=0), causal=False)
    found = encoding(model, 1, 129)
    table = model.decoder.layers["0"].attention.position_bias.weight.detach().numpy()
    for distance, bucket in ((0, 0), (-1, 1), (1, 17), (8, 24), (-20, 10), (-128, 15)):
        column = int(np.flatnonzero(found.distances == distance)[0])
        np.testing.assert_array_equal(found.bias[:, column], table[bucket])


def test_the_bias_of_a_grid_of_patches_is_that_of_steps_along_a_row():
    """Bao et al. 2022: of 2 x 3 patches the steps are 3 x 5, and those along a row the middle five, key to query."""
    stack = model_with(causal=False).config.decoder
    (plain,) = stack.layers
    layer = replace(plain, attention=replace(plain.attention, position=GridPositions(grid=(2, 3))))
    patches = PatchEmbedding(image_size=(2, 3), patch_size=(1, 1))
    model: Any = Transformer(ModelConfig(encoder=replace(stack, embedding=patches, layers=(layer,))))
    found: Any = position_encoding(model, "encoder", 0, 100)
    assert (found.kind, found.table) == ("grid", None)
    assert found.distances.tolist() == [-2, -1, 0, 1, 2]
    table = model.encoder.layers["0"].attention.position_bias.weight.detach().numpy()
    np.testing.assert_array_equal(found.bias.T, table[[9, 8, 7, 6, 5]])


def test_a_model_without_positions_says_so():
    found = encoding(model_with(), 0, 9)
    assert (found.kind, found.table, found.bias) == ("none", None, None)


def test_disentangled_positions_have_a_normed_vector_for_each_distance():
    """He et al. 2021: row span + query - key, the outermost for all that are farther."""
    config = model_with().config
    (plain,) = config.decoder.layers
    layer = replace(plain, attention=replace(plain.attention, position=DisentangledPositions(span=2)))
    stack = replace(config.decoder, layers=(layer,), distances=DistanceTable(n_rows=4, norm=NormSpec()))
    model: Any = Transformer(replace(config, decoder=stack))
    found = encoding(model, 0, 4)
    assert (found.kind, found.bias) == ("disentangled", None)
    assert found.distances.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    rows = torch.nn.functional.layer_norm(model.decoder.distance.weight, (D_MODEL,)).detach().numpy()
    np.testing.assert_allclose(found.table, rows[[3, 3, 3, 2, 1, 0, 0]], atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "n_positions", "message"),
    [
        (1, 5, "layer is 1: decoder has layers 0 to 0"),
        (-1, 5, "layer is -1: decoder has layers 0 to 0"),
        (0, 0, "n_positions is 0: expected at least 1"),
    ],
)
def test_a_layer_that_is_not_there_and_no_positions_are_refused(layer: int, n_positions: int, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        position_encoding(model_with(), "decoder", layer, n_positions)


def test_a_stack_that_is_not_there_is_named_with_those_there_are() -> None:
    with pytest.raises(TraceError, match=r"stack is 'vision': this model has decoder"):
        position_encoding(model_with(), "vision", 0, 5)
