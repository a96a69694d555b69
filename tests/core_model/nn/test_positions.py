"""Positions: expected values from Vaswani et al. 2017, Su et al. 2021, Press et al. 2022, T5, and reports of others."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.beit.modeling_beit import BeitRelativePositionBias
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.t5.modeling_t5 import T5Attention

from core_model.config import (
    AlibiPositions,
    BucketedPositions,
    GridPositions,
    RotaryPositions,
    SinusoidalPositions,
    multi_head,
)
from core_model.nn.positions import (
    alibi_slopes,
    grid_bucket,
    relative_bucket,
    rotary_frequencies,
    rotate,
    score_bias,
    sinusoidal_table,
)
from tests.core_model import models
from tests.core_model.dense import paper_slopes


@pytest.mark.parametrize(
    ("layout", "expected"),
    [("interleaved", [0.8415, 0.5403, 0.0100, 0.99995]), ("halves", [0.8415, 0.0100, 0.5403, 0.99995])],
)
def test_sinusoidal_row_of_position_1_in_4_dimensions(layout, expected):
    """fairseq#4648: two layouts of the same numbers."""
    row_C = sinusoidal_table(SinusoidalPositions(layout=layout), torch.tensor([1]), 4)[0]
    assert row_C.tolist() == pytest.approx(expected, abs=5e-5)


@given(d_model=st.integers(1, 33), position=st.integers(0, 10_000), offset=st.integers(0, 2))
def test_interleaved_sinusoids_follow_section_3_5_at_any_width(d_model, position, offset):
    table_NC = sinusoidal_table(SinusoidalPositions(offset=offset), torch.tensor([position]), d_model)
    for dimension in range(d_model):
        angle = (position + offset) / 10000 ** (2 * (dimension // 2) / d_model)
        expected = math.cos(angle) if dimension % 2 else math.sin(angle)
        assert table_NC[0, dimension].item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("d_model", [1, 2, 5, 8, 13, 64])
def test_halved_sinusoids_equal_those_of_marian(d_model):
    theirs_NC = MarianSinusoidalPositionalEmbedding(50, d_model).create_weight()
    ours_NC = sinusoidal_table(SinusoidalPositions(layout="halves"), torch.arange(50), d_model)
    torch.testing.assert_close(ours_NC, theirs_NC, atol=1e-6, rtol=0)


@pytest.mark.parametrize("d_model", [4, 5, 8, 13, 64])
def test_sinusoids_with_an_endpoint_equal_those_of_fairseq(d_model):
    """M2M-100 leaves the last dimension of an odd width at 0."""
    theirs_NC = M2M100SinusoidalPositionalEmbedding.get_embedding(52, d_model)[2:]
    spec = SinusoidalPositions(layout="halves", endpoint=True, offset=2)
    torch.testing.assert_close(sinusoidal_table(spec, torch.arange(50), d_model), theirs_NC, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [("halves", [-1.9841, 1.9599, 2.4624, 4.0198]), ("interleaved", [-1.1426, 1.9221, 2.9599, 4.0298])],
)
def test_rotary_turns_1_2_3_4_at_position_1(layout, expected):
    """transformers#25199, gpt-fast#190."""
    x_BHND = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 1, 1, 4)
    turned_BHND = rotate(x_BHND, RotaryPositions(n_rotated=4, layout=layout), torch.tensor([1]), 2)
    assert turned_BHND.flatten().tolist() == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_partial_rotary_leaves_the_other_dimensions_alone(layout):
    x_BHND = torch.randn(1, 2, 5, 7, generator=torch.Generator().manual_seed(0))
    spec = RotaryPositions(n_rotated=4, layout=layout)
    turned_BHND = rotate(x_BHND, spec, torch.arange(5), 5)
    assert torch.equal(turned_BHND[..., 4:], x_BHND[..., 4:])
    assert torch.equal(turned_BHND[:, :, 0], x_BHND[:, :, 0])
    torch.testing.assert_close(turned_BHND.norm(dim=-1), x_BHND.norm(dim=-1))
    assert not torch.allclose(turned_BHND[:, :, 1:, :4], x_BHND[:, :, 1:, :4])


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_products_of_rotated_vectors_depend_on_their_distance_alone(layout):
    """Su et al. 2021, eq. 16."""
    q_BHND, k_BHMD = torch.randn(2, 1, 1, 1, 8, generator=torch.Generator().manual_seed(0)).expand(2, 1, 1, 9, 8)
    spec = RotaryPositions(n_rotated=8, base=100.0, layout=layout)
    rotated = [rotate(x, spec, torch.arange(9), 9)[0, 0] for x in (q_BHND, k_BHMD)]
    s_NM = rotated[0] @ rotated[1].T
    for distance in range(-8, 9):
        diagonal = s_NM.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-5, rtol=1e-5)
    assert s_NM[0].std() > 0.1


def test_rotary_keeps_the_dtype_and_turns_far_positions_in_full_precision():
    """Angles of position 100 000 rounded to float16 or bfloat16 would be noise."""
    x_BHND = torch.ones(1, 1, 1, 4)
    spec = RotaryPositions(n_rotated=4)
    exact = rotate(x_BHND, spec, torch.tensor([100_000]), 100_001)
    for dtype in (torch.float16, torch.bfloat16):
        turned = rotate(x_BHND.to(dtype), spec, torch.tensor([100_000]), 100_001)
        assert turned.dtype == dtype
        torch.testing.assert_close(turned.float(), exact, atol=0.02, rtol=0)


def test_rotary_frequencies_fall_geometrically_from_1():
    frequency_P, factor = rotary_frequencies(RotaryPositions(n_rotated=8, base=10000.0), 100)
    assert frequency_P.tolist() == pytest.approx([1, 0.1, 0.01, 0.001])
    assert factor == 1


@pytest.mark.parametrize("n_heads", [1, 2, 3, 6, 8, 12, 16, 40, 112])
def test_alibi_slopes_are_those_of_the_paper(n_heads):
    assert alibi_slopes(AlibiPositions(), n_heads).tolist() == pytest.approx(paper_slopes(n_heads))


def test_alibi_of_8_heads_halves_from_one_half():
    """Press et al. 2022, section 3."""
    assert alibi_slopes(AlibiPositions(), 8).tolist() == [2.0**-i for i in range(1, 9)]


def test_alibi_takes_the_slope_for_each_token_of_distance():
    bias_HNM = score_bias(AlibiPositions(), torch.tensor([0.5, 0.25]), range(3, 4), [range(5)])
    assert bias_HNM[:, 0].tolist() == [[-1.5, -1.0, -0.5, 0, -0.5], [-0.75, -0.5, -0.25, 0, -0.25]]


def test_the_scale_of_alibi_multiplies_its_slopes():
    bias_HNM = score_bias(AlibiPositions(scale=0.5), torch.tensor([0.5]), range(3, 4), [range(4)])
    assert bias_HNM.tolist() == [[[-0.75, -0.5, -0.25, 0]]]


@pytest.mark.parametrize("keys_first", [False, True])
@pytest.mark.parametrize(
    "spec",
    [
        AlibiPositions(scale=0.5),
        AlibiPositions(rounded=True),
        BucketedPositions(n_buckets=8, max_distance=20),
        BucketedPositions(n_buckets=8, max_distance=20, bidirectional=False),
        GridPositions(grid=(7, 9)),
    ],
)
def test_the_bias_of_a_block_is_that_of_each_of_its_pairs(spec, keys_first):
    weights = torch.randn(4) if isinstance(spec, AlibiPositions) else torch.randn(spec.n_buckets, 4)
    start = 0 if isinstance(spec, GridPositions) else 1000  # past 256 bfloat16 rounds positions
    queries, keys = range(start + 9, start + 50), range(start + 3, start + 31)
    block = score_bias(spec, weights, queries, [keys], keys_first=keys_first)
    assert block.shape == ((4, 28, 41) if keys_first else (4, 41, 28))
    for i, query in enumerate(queries):
        for j, key in enumerate(keys):
            pair_H = score_bias(spec, weights, range(query, query + 1), [range(key, key + 1)])[:, 0, 0]
            assert torch.equal(block[:, j, i] if keys_first else block[:, i, j], pair_H)


def test_the_bias_of_keys_with_a_gap_between_them_is_that_of_each_of_them():
    bias_HNM = score_bias(AlibiPositions(), torch.tensor([0.5]), range(9, 15), [range(2), range(7, 10)])
    assert torch.equal(bias_HNM[0], -0.5 * (torch.arange(9, 15)[:, None] - torch.tensor([0, 1, 7, 8, 9])).abs())


def test_the_bias_of_queries_and_keys_that_step_is_that_of_each_of_them():
    bias_HNM = score_bias(AlibiPositions(), torch.tensor([0.5]), range(9, 15, 3), [range(0, 9, 4)])
    assert torch.equal(bias_HNM[0], -0.5 * (torch.tensor([9, 12])[:, None] - torch.tensor([0, 4, 8])).abs())


def test_a_table_of_biases_learns_from_every_pair_of_its_distance():
    table = torch.zeros(4, 1, requires_grad=True)
    spec = BucketedPositions(n_buckets=4, max_distance=8)
    score_bias(spec, table, range(3), [range(3)]).sum().backward()
    assert table.grad is not None
    expected = torch.zeros(4)
    for query in range(3):
        for key in range(3):
            expected[relative_bucket(spec, torch.tensor(key - query))] += 1
    assert torch.equal(table.grad[:, 0], expected)


def test_rounded_alibi_differs_between_keys_as_slope_times_position_in_bfloat16_does():
    """Falcon: 2^(-1/2) is 181/256 in bfloat16, whose products keep 8 bits of their own."""
    slope_H, query, keys = torch.tensor([2**-0.5]), range(39, 40), [range(40)]
    bias_M = score_bias(AlibiPositions(rounded=True), slope_H, query, keys)[0, 0]
    expected_M = torch.tensor([float(torch.tensor(181 / 256 * j).bfloat16()) for j in range(40)])
    assert torch.equal(bias_M, expected_M - expected_M[39])
    assert not torch.equal(bias_M, score_bias(AlibiPositions(), slope_H, query, keys)[0, 0])


def test_steps_between_patches_are_counted_row_by_row_and_the_class_token_has_three_buckets_of_its_own():
    """Bao et al. 2022's code: for 2 x 2 patches (3 x 3 steps), from query (0, 0) to key (1, 1) and so on."""
    spec, position = GridPositions(grid=(2, 2)), torch.arange(5)
    assert grid_bucket(spec, position[:, None], position).tolist() == [
        [11, 9, 9, 9, 9],
        [10, 4, 3, 1, 0],
        [10, 5, 4, 2, 1],
        [10, 7, 6, 4, 3],
        [10, 8, 7, 5, 4],
    ]


@pytest.mark.parametrize("grid", [(1, 1), (3, 3), (2, 5), (4, 1)])
def test_steps_between_patches_equal_those_of_beit(grid: tuple[int, int]):
    spec, position = GridPositions(grid=grid), torch.arange(1 + grid[0] * grid[1])
    theirs = BeitRelativePositionBias.generate_relative_position_index(grid)
    assert torch.equal(grid_bucket(spec, position[:, None], position), theirs)
    assert spec.n_buckets == int(theirs.max()) + 1


def test_t5_buckets_of_32_to_128_both_ways():
    """transformers#13397, #10221."""
    distance = torch.tensor([-1, 1, 8, -20, -128, 0])
    assert relative_bucket(BucketedPositions(), distance).tolist() == [1, 17, 24, 10, 15, 0]


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (8, 20), (64, 1000), (4, 9), (33, 50)])
def test_buckets_equal_those_of_t5(n_buckets, max_distance, bidirectional):
    distance = torch.arange(-2000, 2001)
    spec = BucketedPositions(n_buckets=n_buckets, max_distance=max_distance, bidirectional=bidirectional)
    theirs = T5Attention._relative_position_bucket(
        distance, bidirectional=bidirectional, num_buckets=n_buckets, max_distance=max_distance
    )
    assert torch.equal(relative_bucket(spec, distance), theirs)


@pytest.mark.parametrize("position", [SinusoidalPositions(), None], ids=["sinusoidal", "rotary"])
def test_positions_are_computed_where_the_model_is_whatever_the_default_device(position):
    attention = multi_head(models.D_MODEL, 4, position=None if position else RotaryPositions(n_rotated=4))
    config = models.decoder_only(attention)
    assert config.decoder is not None
    model = models.make(replace(config, decoder=replace(config.decoder, position=position)))
    ids_BN = torch.tensor([[3, 1, 4]])
    with torch.no_grad():
        expected_BNC = model.hidden(ids_BN)
        with torch.device("meta"):
            assert torch.equal(model.hidden(ids_BN), expected_BNC)
