"""Everything a trace says of one head, for attentions of every kind: matrix, tiles, pooled views, rows and cells.

What is expected comes from attention by its definition, and from numpy on the whole matrix.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core_model.cancel import CancelToken
from core_model.config import AlibiPositions, AttentionSpec, BucketedPositions, MaskSpec, multi_head
from core_model.errors import Cancelled, TraceError
from core_model.nn import product
from core_model.nn.positions import alibi_slopes
from core_model.nn.scores import HeadInputs
from core_model.results import Reduce
from core_model.trace import head_group
from core_model.trace.head_group import HeadGroup
from core_model.trace.trace import Trace
from core_model.trace.views import pool
from tests.core_model.attention_cases import SITE, AttentionCase, attention_cases

CAUSAL = MaskSpec(causal=True)


def pooled(matrix: np.ndarray, size: tuple[int, int], reduce: Reduce) -> np.ndarray:
    """Each pixel the maximum, the mean or the first of ceil(n / size) rows and columns; fewer at the far edges."""
    if reduce == "sample":
        down, across = (-(-n // pixels) for n, pixels in zip(matrix.shape, size, strict=True))
        return matrix[::down, ::across]
    combine = np.maximum if reduce == "max" else np.add
    picture, n_cells = matrix.astype(np.float64), np.ones(matrix.shape)
    for axis in (0, 1):
        starts = range(0, matrix.shape[axis], -(-matrix.shape[axis] // size[axis]))
        picture = combine.reduceat(picture, starts, axis)
        n_cells = np.add.reduceat(n_cells, starts, axis)
    return picture if reduce == "max" else picture / n_cells


def a_range(data: st.DataObject, n: int) -> tuple[int, int]:
    start = data.draw(st.integers(0, n - 1))
    return start, data.draw(st.integers(start + 1, n))


def a_head(data: st.DataObject, case: AttentionCase) -> int:
    return data.draw(st.integers(0, case.spec.n_heads - 1))


@settings(max_examples=300)
@given(case=attention_cases())
def test_attention_equals_its_definition(case: AttentionCase):
    trace = case.trace()
    for head in range(case.spec.n_heads):
        weights = trace.attention(SITE, 0, head)
        assert weights.dtype == np.float32
        np.testing.assert_allclose(weights, case.dense.weights_BHNM[0, head], atol=2e-5, rtol=2e-5)


@settings(max_examples=150)
@given(case=attention_cases())
def test_masked_cells_are_marked_and_exactly_zero(case: AttentionCase):
    view = case.trace().view(SITE, 0, 0)
    hidden_NM = ~case.dense.visible_BNM[0].numpy()
    assert view.exact
    assert np.array_equal(view.masked, hidden_NM)
    assert not view.values[hidden_NM].any()
    assert np.isfinite(view.values).all()


@settings(max_examples=150)
@given(case=attention_cases())
def test_softmax_rows_sum_to_one_but_for_what_a_sink_takes(case: AttentionCase):
    sums_N = case.trace().attention(SITE, 0, 0).sum(-1)
    sees_a_key_N = case.dense.visible_BNM[0].any(-1).numpy()
    assert not sums_N[~sees_a_key_N].any()
    if case.spec.normalizer == "relu":
        return
    if case.spec.sinks:
        sink = case.attention.state_dict()["sinks"][0].double()
        expected_N = 1 - torch.exp(sink - case.dense.logsumexp_BHN[0, 0]).numpy()
        assert (sums_N < 1 + 1e-6).all()
        np.testing.assert_allclose(sums_N[sees_a_key_N], expected_N[sees_a_key_N], atol=2e-5)
    else:
        np.testing.assert_allclose(sums_N[sees_a_key_N], 1, atol=2e-5)


@settings(max_examples=200)
@given(case=attention_cases(), data=st.data())
def test_any_tile_is_the_slice_of_the_matrix(case: AttentionCase, data: st.DataObject):
    trace, head = case.trace(), a_head(data, case)
    whole = trace.attention(SITE, 0, head)
    rows, cols = a_range(data, whole.shape[0]), a_range(data, whole.shape[1])
    tile = trace.view(SITE, 0, head, rows, cols)
    expected = whole[slice(*rows), slice(*cols)]
    assert tile.exact and tile.shape == expected.shape and (tile.rows, tile.cols) == (rows, cols)
    np.testing.assert_allclose(tile.values, expected, atol=1e-6, rtol=1e-5)
    assert np.array_equal(tile.masked, ~case.dense.visible_BNM[0].numpy()[slice(*rows), slice(*cols)])


@settings(max_examples=300)
@given(case=attention_cases(), data=st.data(), reduce=st.sampled_from(["max", "mean", "sample"]))
def test_a_pooled_view_is_the_matrix_pooled(case: AttentionCase, data: st.DataObject, reduce: Reduce):
    trace, head = case.trace(), a_head(data, case)
    whole = trace.attention(SITE, 0, head)
    rows, cols = a_range(data, whole.shape[0]), a_range(data, whole.shape[1])
    size = (data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9)))
    view = trace.view(SITE, 0, head, rows, cols, size, reduce)
    part = slice(*rows), slice(*cols)
    np.testing.assert_allclose(view.values, pooled(whole[part], size, reduce), atol=1e-6, rtol=1e-5)
    share_hidden = pooled(
        ~case.dense.visible_BNM[0].numpy()[part] * 1.0, size, "sample" if reduce == "sample" else "mean"
    )
    assert np.array_equal(view.masked, share_hidden == 1)
    assert view.exact == (view.shape == whole[part].shape)
    assert view.cells == tuple(-(-n // most) for n, most in zip(whole[part].shape, size, strict=True))
    assert view.reduce == reduce


@settings(max_examples=100)
@given(case=attention_cases(), size=st.integers(1, 30))
def test_thumbnails_are_max_pooled_views_of_all_heads_with_nan_where_masked(case: AttentionCase, size: int):
    trace = case.trace()
    thumbnails = trace.thumbnails(SITE, size)
    assert thumbnails.shape[:2] == (1, case.spec.n_heads)
    for head in range(case.spec.n_heads):
        view = trace.view(SITE, 0, head, size=(size, size))
        np.testing.assert_allclose(
            thumbnails[0, head], np.where(view.masked, np.nan, view.values), atol=1e-6, rtol=1e-5
        )


@settings(max_examples=100)
@given(case=attention_cases(), data=st.data())
def test_a_row_and_a_cell_are_those_of_the_matrix(case: AttentionCase, data: st.DataObject):
    trace, head = case.trace(), a_head(data, case)
    whole = trace.attention(SITE, 0, head)
    query = data.draw(st.integers(0, whole.shape[0] - 1))
    key = data.draw(st.integers(0, whole.shape[1] - 1))
    row, cell = trace.row(SITE, 0, head, query), trace.cell(SITE, 0, head, query, key)
    np.testing.assert_allclose(row, whole[query], atol=1e-6, rtol=1e-5)
    assert cell.weight == row[key]
    assert cell.masked == (not case.dense.visible_BNM[0, query, key])
    assert cell.rank == 1 + (row > row[key]).sum()
    shares = row[row > 0].astype(np.float64) / row.sum(dtype=np.float64)
    entropy = pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-5) if len(shares) else None
    assert cell.row_entropy == entropy
    if cell.masked:
        assert cell.score is None
    else:
        assert cell.score == pytest.approx(float(case.dense.scores_BHNM[0, head, query, key]), abs=2e-4, rel=1e-4)


def long_trace(spec: AttentionSpec, n_tokens: int) -> Trace:
    """A trace of random queries and keys, longer than any block that is computed at once."""
    generator = torch.Generator().manual_seed(0)
    q_BHND = 2 * torch.randn(1, spec.n_heads, n_tokens, spec.head_size, generator=generator)
    k_BKMD = 2 * torch.randn(1, spec.n_key_heads, n_tokens, spec.head_size, generator=generator)
    heads = HeadInputs(
        spec=spec,
        q_BHND=q_BHND,
        k_BKMD=k_BKMD,
        bias_weights=bias_weights(spec, generator),
        sinks_H=torch.randn(spec.n_heads, generator=generator) if spec.sinks else None,
    )
    return Trace({(SITE, 0): heads}, {}, hidden=np.zeros((1, 1), np.float32), logits=None)


def bias_weights(spec: AttentionSpec, generator: torch.Generator) -> torch.Tensor | None:
    if isinstance(spec.position, AlibiPositions):
        return alibi_slopes(spec.position, spec.n_heads)
    if isinstance(spec.position, BucketedPositions):
        return torch.randn(spec.position.n_buckets, spec.n_heads, generator=generator)
    return None


@pytest.fixture(params=["onednn", "torch"])
def small_blocks(request, monkeypatch):
    """Blocks that a test can be longer than, by either way of multiplying."""
    if request.param == "onednn" and not torch.backends.mkldnn.is_available():
        pytest.skip("this PyTorch was built without oneDNN")
    monkeypatch.setattr(product, "onednn_is_faster", lambda: request.param == "onednn")
    monkeypatch.setattr(head_group, "_BLOCK_ROWS", 384)
    monkeypatch.setattr(head_group, "_BLOCK_SCORES", 384 * 384)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("reduce", ["max", "mean", "sample"])
@pytest.mark.parametrize("size", [(1024, 1024), (200, 333), (7, 11), (2, 1), (1300, 2), (1, 1300)])
@pytest.mark.parametrize(
    "options",
    [
        {"mask": MaskSpec(causal=True)},
        {"mask": MaskSpec(causal=True, window=90, n_global=3)},
        {"soft_cap": 3.0, "mask": MaskSpec(window=50)},
        {"normalizer": "relu", "mask": MaskSpec(causal=True)},
        {"position": AlibiPositions(), "mask": MaskSpec(causal=True)},
        {"position": BucketedPositions(n_buckets=8, max_distance=40), "mask": MaskSpec(window=700, n_global=2)},
    ],
    ids=["causal", "window", "capped", "relu", "ALiBi", "buckets"],
)
def test_views_of_many_blocks_are_the_matrix_pooled(options, size, reduce):
    """Pixels of less than a block, of several, and edges that are no multiple of either."""
    trace = long_trace(multi_head(8, 1, **options), 1301)
    whole = trace.attention(SITE, 0, 0)
    view = trace.view(SITE, 0, 0, rows=(1, 1301), cols=(0, 1300), size=size, reduce=reduce)
    np.testing.assert_allclose(view.values, pooled(whole[1:, :1300], size, reduce), atol=1e-6, rtol=2e-5)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [1, 7, 64, 1301])
@pytest.mark.parametrize(
    "options",
    [
        {"mask": MaskSpec(causal=True)},
        {"mask": MaskSpec(window=40, n_global=2)},
        {"mask": MaskSpec(causal=True, n_prefix=300)},
        {"soft_cap": 3.0},
        {"sinks": True, "mask": MaskSpec(causal=True)},
        {"normalizer": "relu", "mask": MaskSpec(causal=True, window=300)},
        {"position": AlibiPositions()},
        {"position": AlibiPositions(rounded=True), "mask": MaskSpec(causal=True)},
        {"position": BucketedPositions(n_buckets=8, max_distance=40), "soft_cap": 3.0},
    ],
    ids=["causal", "window", "prefix", "capped", "sinks", "relu", "ALiBi", "rounded ALiBi", "capped buckets"],
)
def test_thumbnails_of_many_heads_and_blocks_are_the_matrices_pooled(options, size):
    """14 heads over 2: more than are computed together."""
    trace = long_trace(replace(multi_head(14 * 3, 14, **options), n_key_heads=2), 1301)
    thumbnails = trace.thumbnails(SITE, size)[0]
    for head in range(14):
        expected = pooled(trace.attention(SITE, 0, head), (size, size), "max")
        np.testing.assert_allclose(np.nan_to_num(thumbnails[head]), expected, atol=1e-6, rtol=2e-5)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("n_heads", "n_key_heads"), [(12, 12), (12, 1), (30, 2), (15, 5), (1, 1)])
@pytest.mark.parametrize("n_tokens", [129, 379, 601])
def test_a_block_of_one_row_is_right_in_every_head(n_heads, n_key_heads, n_tokens):
    """The last row alone, in groups of heads that share keys and of some that do not."""
    trace = long_trace(replace(multi_head(8 * n_heads, n_heads, mask=CAUSAL), n_key_heads=n_key_heads), n_tokens)
    for size in (64, n_tokens):
        thumbnails = trace.thumbnails(SITE, size)[0]
        for head in range(n_heads):
            expected = pooled(trace.attention(SITE, 0, head), (size, size), "max")
            np.testing.assert_allclose(np.nan_to_num(thumbnails[head]), expected, atol=1e-6, rtol=2e-5)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("reduce", ["max", "mean", "sample"])
@pytest.mark.parametrize("size", [(700, 700), (50, 33)])
@pytest.mark.parametrize("options", [{}, {"normalizer": "relu"}], ids=["softmax", "relu"])
def test_a_gain_multiplies_the_weights_of_its_key(options, size, reduce):
    """A key of no gain leaves nothing; one whose gain has no end leaves what it cannot see at 0."""
    trace = long_trace(multi_head(8, 1, mask=CAUSAL, **options), 700)
    gain_M = torch.rand(700, generator=torch.Generator().manual_seed(1))
    gain_M[3], gain_M[600] = 0.0, float("inf")
    with np.errstate(invalid="ignore"):
        gained = np.tril(trace.attention(SITE, 0, 0) * gain_M.numpy())
    rows = slice(100, 590)
    picture = pool(trace.head(SITE, 0, 0), rows, slice(0, 700), size, reduce, gain_M=gain_M)
    np.testing.assert_allclose(picture.weights, pooled(gained[rows], size, reduce), atol=1e-6, rtol=2e-5)
    sees = np.tril(np.ones((700, 700)))[rows]
    assert np.array_equal(picture.masked, pooled(sees, size, "max" if reduce == "mean" else reduce) == 0)


@pytest.mark.parametrize("head_size", [64, 80])
def test_weights_of_very_large_scores_are_the_same_in_tiles_and_pictures(head_size):
    """Whose normalisers must round as they do: a scale of 80 ** -0.5 is no power of two."""
    trace = long_trace(multi_head(head_size, 1, mask=CAUSAL), 600)
    heads = trace.heads(SITE, 0)
    large = replace(heads, q_BHND=1e6 * heads.q_BHND)
    trace = Trace({(SITE, 0): large}, {}, hidden=trace.hidden, logits=None)
    whole = trace.attention(SITE, 0, 0)
    tile = trace.view(SITE, 0, 0, rows=(0, 600), cols=(0, 599))
    np.testing.assert_allclose(tile.values, whole[:, :599], atol=1e-6)
    np.testing.assert_allclose(
        np.nan_to_num(trace.thumbnails(SITE, 60)[0, 0]), pooled(whole, (60, 60), "max"), atol=1e-6
    )


@pytest.mark.parametrize("options", [{}, {"soft_cap": 3.0}, {"sinks": True}, {"normalizer": "relu"}])
def test_the_row_normalisers_of_a_head_are_computed_once(options, monkeypatch):
    trace = long_trace(multi_head(8, 2, mask=CAUSAL, **options), 60)
    assert trace.not_numbers() == {}
    monkeypatch.setattr(HeadGroup, "normalizers", lambda *_: pytest.fail("they were known"))
    assert trace.not_numbers() == {}
    trace.thumbnails(SITE)
    trace.view(SITE, 0, 1, size=(10, 10))
    trace.view(SITE, 0, 0, size=(10, 10), reduce="sample")


def test_looking_for_what_is_no_number_stops_when_asked():
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        long_trace(multi_head(8, 1, soft_cap=3.0), 60).not_numbers(cancel=token)


def test_values_are_read_only_and_contiguous():
    trace = long_trace(multi_head(8, 1), 10)
    for array in (trace.attention(SITE, 0, 0), trace.view(SITE, 0, 0).values, trace.thumbnails(SITE), trace.hidden):
        assert array.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        trace.attention(SITE, 0, 0)[0, 0] = 1


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda t: t.attention("encoder.self", 0, 0), r"site is 'encoder.self': this model has decoder.self"),
        (lambda t: t.attention(SITE, 1, 0), r"layer is 1: decoder.self has layers 0 to 0"),
        (lambda t: t.attention(SITE, 0, 3), r"head is 3: decoder.self has heads 0 to 0"),
        (lambda t: t.attention(SITE, 0, -1), r"head is -1: decoder.self has heads 0 to 0"),
        (lambda t: t.view(SITE, 0, 0, rows=(3, 3)), r"rows is \(3, 3\).*stop <= 10"),
        (lambda t: t.view(SITE, 0, 0, cols=(0, 11)), r"cols is \(0, 11\).*stop <= 10"),
        (lambda t: t.view(SITE, 0, 0, size=(0, 5)), r"size is \(0, 5\)"),
        (lambda t: t.row(SITE, 0, 0, 10), r"rows is \(10, 11\)"),
        (lambda t: t.cell(SITE, 0, 0, 0, -1), r"cols is \(-1, 0\)"),
    ],
)
def test_a_request_outside_the_trace_names_what_there_is(ask, message):
    with pytest.raises(TraceError, match=message):
        ask(long_trace(multi_head(8, 1), 10))
