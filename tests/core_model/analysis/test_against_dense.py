"""Each analysis against the plain computation on whole matrices."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from core_model.analysis import blocks
from core_model.analysis.direct_logit import ATTRIBUTION_SITES, logit_attribution
from core_model.analysis.head_statistics import head_statistics
from core_model.analysis.links import token_totals, top_links
from core_model.analysis.logit_lens import LENS_SITES, layer_logits, logit_lens
from core_model.analysis.rollout import rollout
from core_model.analysis.value_weighted import value_norms, value_site, value_weighted
from core_model.analysis.words import merge_words
from core_model.cancel import CancelToken
from core_model.config import HeadSpec, MaskSpec, ModelConfig, NormSpec, multi_head
from core_model.errors import Cancelled, TraceError
from core_model.nn.scores import HeadInputs
from core_model.trace.inputs import Inputs
from core_model.trace.trace import Trace, run_trace
from tests.core_model import models

from .models import N_HEADS, N_LAYERS, VOCAB_SIZE, decoder_only, encoder_only

N = 57
IDS = np.random.default_rng(1).integers(0, VOCAB_SIZE, N)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks of rows even for the short inputs of these tests."""
    monkeypatch.setattr(blocks, "_CELLS", 16 * N)


MASKS = {
    "causal": MaskSpec(causal=True),
    "window": MaskSpec(causal=True, window=9),
    "window both ways": MaskSpec(window=5),
    "window and globals": MaskSpec(causal=True, window=6, n_global=2),
    "prefix": MaskSpec(causal=True, n_prefix=20),
}


@pytest.fixture(params=[*MASKS, "encoder"])
def traced(request: pytest.FixtureRequest) -> tuple[Trace, str]:
    """A trace and its self-attention site, of every kind of mask and of none."""
    if request.param == "encoder":
        return run_trace(encoder_only(), Inputs(ids=IDS)), "encoder.self"
    return run_trace(decoder_only(mask=MASKS[request.param]), Inputs(ids=IDS)), "decoder.self"


def _matrices(trace: Trace, site: str) -> np.ndarray:
    return np.array(
        [[trace.attention(site, la, h) for h in range(N_HEADS)] for la in range(N_LAYERS)], dtype=np.float64
    )


def test_head_statistics_equal_their_formulas(traced: tuple[Trace, str]) -> None:
    trace, site = traced
    a = _matrices(trace, site)
    special = np.arange(N) % 9 == 0
    got = head_statistics(trace, site, ids=IDS.tolist(), special=special.tolist())
    i, j = np.indices((N, N))
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(a > 0, a * np.log(a), 0).sum(-1).mean(-1)
    same = (IDS[:, None] == IDS) & (i != j)
    expected = {
        "entropy": entropy,
        "effective_span": np.exp(entropy),
        "distance": (a * abs(i - j)).sum(-1).mean(-1),
        "first_token": a[..., 0].mean(-1),
        "diagonal": a[..., range(N), range(N)].mean(-1),
        "previous_token": a[..., range(1, N), range(N - 1)].mean(-1),
        "same_token": (a * same).sum(-1).mean(-1),
        "special_tokens": a[..., special].sum(-1).mean(-1),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(got, name), value, rtol=2e-4, atol=1e-6, err_msg=name)


def test_statistics_without_ids_or_special_tokens_are_unknown_not_zero(traced: tuple[Trace, str]) -> None:
    trace, site = traced
    got = head_statistics(trace, site)
    assert np.isnan(got.same_token).all()
    assert np.isnan(got.special_tokens).all()


def test_top_links_are_the_largest_weights_with_their_cells(traced: tuple[Trace, str]) -> None:
    trace, site = traced
    a = trace.attention(site, 1, 2)
    links = top_links(trace, site, 1, 2, n=40)
    np.testing.assert_allclose(links.weight, np.sort(a.ravel())[::-1][:40], rtol=1e-5)
    np.testing.assert_allclose(a[links.query, links.key], links.weight, rtol=1e-5)


def test_a_row_that_is_no_number_takes_no_place_from_the_links_of_the_others() -> None:
    q_BHND = torch.randn(1, 1, 20, 4, generator=torch.Generator().manual_seed(0))
    q_BHND[0, 0, 19] = float("nan")
    heads = HeadInputs(spec=multi_head(4, 1, mask=MaskSpec(causal=True)), q_BHND=q_BHND, k_BKMD=q_BHND[..., :19, :])
    trace = Trace({("decoder.self", 0): heads}, {}, hidden=np.zeros((1, 1), np.float32), logits=None)
    weights = np.sort(trace.attention("decoder.self", 0, 0)[:19], axis=None)[::-1]
    np.testing.assert_allclose(top_links(trace, "decoder.self", 0, 0, n=10).weight, weights[:10], rtol=1e-6)


@pytest.mark.parametrize("given", [{"ids": [3]}, {"special": [True] * (N + 1)}], ids=["ids", "special"])
def test_statistics_refuse_marks_that_are_not_one_of_each_token(traced: tuple[Trace, str], given: Any) -> None:
    trace, site = traced
    name, marks = next(iter(given.items()))
    with pytest.raises(TraceError, match=f"{name} has {len(marks)} entries: .* has {N} keys"):
        head_statistics(trace, site, **given)


@pytest.mark.parametrize("rows", [(-2, 3), (5, N + 1), (4, 4)])
def test_rollout_refuses_rows_there_are_not(traced: tuple[Trace, str], rows: tuple[int, int]) -> None:
    trace, site = traced
    with pytest.raises(TraceError, match=rf"rows is \({rows[0]}, {rows[1]}\): expected 0 <= start < stop <= {N}"):
        rollout(trace, site, rows)


def test_token_totals_are_sums_of_columns_and_rows(traced: tuple[Trace, str]) -> None:
    trace, site = traced
    a = trace.attention(site, 0, 1)
    totals = token_totals(trace, site, 0, 1)
    np.testing.assert_allclose(totals.received, a.sum(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(totals.given, np.ones(N), rtol=1e-5)


def test_rollout_is_the_product_of_layers_with_half_residual(traced: tuple[Trace, str]) -> None:
    trace, site = traced
    expected = np.eye(N)
    for layer in _matrices(trace, site):
        expected = (0.5 * layer.mean(0) + 0.5 * np.eye(N)) @ expected
    np.testing.assert_allclose(rollout(trace, site), expected, atol=1e-6)
    np.testing.assert_allclose(rollout(trace, site, rows=(50, 53)), expected[50:53], atol=1e-6)


def test_value_norms_are_of_the_value_as_it_reaches_the_residual_stream() -> None:
    model = decoder_only()
    trace = run_trace(model, Inputs(ids=IDS), keep=["decoder.1.value", "decoder.1.residual_before"])
    layer = model.output_stack.layer(1)
    attention = layer.attention
    x = torch.from_numpy(trace.activation("decoder.1.residual_before").copy())
    entered = layer.attention_residual.enter(x)
    value = attention.value(entered).unflatten(-1, (N_HEADS, -1))[:, 2]
    write = attention.output.weight.unflatten(1, (N_HEADS, -1))[:, 2]
    expected = (value @ write.T).norm(dim=-1).detach().numpy()
    np.testing.assert_allclose(value_norms(model, trace, "decoder.self", 1, 2), expected, rtol=1e-5)


@pytest.mark.parametrize("site", ["encoder.self", "decoder.self", "decoder.cross"])
@pytest.mark.parametrize(
    ("rows", "cols", "size"),
    [(None, None, (100, 100)), (None, None, (4, 3)), ((3, 11), (0, 5), (3, 9)), ((12, 13), (9, 13), (1, 1))],
    ids=str,
)
def test_value_weighted_attention_is_each_weight_times_the_norm_of_its_value(site, rows, cols, size) -> None:
    model = models.make(models.encoder_decoder())
    inputs = Inputs(ids=IDS[:13], decoder_ids=IDS[20:33])
    trace = run_trace(model, inputs, keep=[value_site(site, 1)])
    moved = trace.attention(site, 1, 2) * value_norms(model, trace, site, 1, 2)
    expected = _largest(moved[slice(*(rows or (0, 13))), slice(*(cols or (0, 13)))], size)
    got = value_weighted(model, trace, site, 1, 2, rows, cols, size)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)


def _largest(matrix: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The largest of the cells under each pixel."""
    down, across = (-(-n // pixels) for n, pixels in zip(matrix.shape, size, strict=True))
    return np.array(
        [
            [matrix[y : y + down, x : x + across].max() for x in range(0, matrix.shape[1], across)]
            for y in range(0, matrix.shape[0], down)
        ]
    )


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize(
    ("cols", "size"), [(None, (57, 57)), (None, (10, 7)), ((11, 50), (57, 6)), ((40, 57), (3, 40))]
)
def test_value_weighted_attention_of_a_window_has_its_pixels_where_the_keys_are(mask, cols, size) -> None:
    model = decoder_only(mask=mask)
    trace = run_trace(model, Inputs(ids=IDS), keep=["decoder.1.value"])
    moved = trace.attention("decoder.self", 1, 2) * value_norms(model, trace, "decoder.self", 1, 2)
    got = value_weighted(model, trace, "decoder.self", 1, 2, (5, 57), cols, size)
    np.testing.assert_allclose(got, _largest(moved[5:, slice(*(cols or (0, 57)))], size), rtol=1e-5, atol=1e-7)


def test_a_head_of_values_that_is_not_there_is_named() -> None:
    model = decoder_only()
    trace = run_trace(model, Inputs(ids=IDS))
    with pytest.raises(TraceError, match=r"site is 'text.self': this model has decoder.self"):
        value_norms(model, trace, "text.self", 0, 0)
    with pytest.raises(TraceError, match=r"decoder.1.value was not kept"):
        value_norms(model, trace, "decoder.self", 1, 0)


def test_words_sum_over_keys_and_average_over_queries(traced: tuple[Trace, str]) -> None:
    trace, site = traced
    words = np.sort(np.random.default_rng(0).integers(0, 20, N))
    words = np.unique(words, return_inverse=True)[1]
    a = trace.attention(site, 1, 0)
    member = (words[:, None] == np.arange(words.max() + 1)).astype(float)
    expected = (member / member.sum(0)).T @ a @ member
    merged = merge_words(trace, site, 1, 0, words.tolist(), words.tolist())
    np.testing.assert_allclose(merged, expected, atol=1e-6)
    np.testing.assert_allclose(merged.sum(1), 1, rtol=1e-5)


def test_last_row_of_the_logit_lens_is_the_models_output() -> None:
    model = decoder_only()
    trace = run_trace(model, Inputs(ids=IDS), keep=LENS_SITES)
    assert trace.logits is not None
    last = layer_logits(model, trace, N_LAYERS - 1)
    np.testing.assert_allclose(last.numpy(), trace.logits, atol=1e-5 * abs(trace.logits).max())
    lens = logit_lens(model, trace, n=3)
    np.testing.assert_array_equal(lens.ids[-1, :, 0], trace.logits.argmax(-1))


def test_logit_lens_applies_the_final_norm_at_every_layer() -> None:
    model = decoder_only()
    trace = run_trace(model, Inputs(ids=IDS), keep=LENS_SITES)
    x = torch.from_numpy(trace.activation("decoder.0.residual_after").copy())
    weights = model.state_dict()
    gain, bias = weights["decoder.final_norm.weight"], weights["decoder.final_norm.bias"]
    normed = torch.nn.functional.layer_norm(x, x.shape[-1:], gain, bias, 1e-5)
    expected = normed @ weights["decoder.embedding.token.weight"].T
    np.testing.assert_allclose(layer_logits(model, trace, 0).numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("norm", [NormSpec(), NormSpec(kind="rms"), NormSpec(kind="rms", unit_offset=True)])
@pytest.mark.parametrize("tied", [True, False])
def test_the_terms_of_a_logit_sum_to_it(norm: NormSpec, tied: bool) -> None:
    model = decoder_only(norm=norm, tied=tied)
    trace = run_trace(model, Inputs(ids=IDS), keep=ATTRIBUTION_SITES)
    got = logit_attribution(model, trace, position=31, output=7)
    total = got.heads.sum() + got.feed_forward.sum() + got.embedding + got.biases
    assert total == pytest.approx(got.logit, rel=1e-4, abs=1e-3)
    assert got.heads.shape == (N_LAYERS, N_HEADS)


def test_some_words_are_rows_of_the_matrix_of_all(traced: tuple[Trace, str]) -> None:
    trace, site = traced
    words = [token // 3 for token in range(N)]
    whole = merge_words(trace, site, 1, 0, words, words)
    np.testing.assert_allclose(merge_words(trace, site, 1, 0, words, words, words=(4, 9)), whole[4:9], rtol=1e-6)
    with pytest.raises(TraceError, match=r"words is \(4, 20\).*stop <= 19"):
        merge_words(trace, site, 1, 0, words, words, words=(4, 20))


def test_one_token_has_no_previous_one() -> None:
    statistics = head_statistics(run_trace(decoder_only(), Inputs(ids=[3])), "decoder.self")
    assert np.isnan(statistics.previous_token).all()
    assert (statistics.diagonal == 1).all()
    assert (statistics.entropy == 0).all()


def test_the_logit_lens_of_a_head_that_pools_is_one_row_a_layer() -> None:
    head = HeadSpec(n_outputs=4, task="sequence_classes", pooling="mean")
    model = models.make(ModelConfig(encoder=models.stack(*[models.layer(multi_head(16, 4))] * 2), head=head))
    trace = run_trace(model, Inputs(ids=IDS), keep=LENS_SITES)
    assert trace.logits is not None
    lens = logit_lens(model, trace, n=9)
    assert lens.ids.shape == (2, 1, 4)
    np.testing.assert_array_equal(lens.ids[-1, 0], trace.logits.argsort()[::-1])
    np.testing.assert_allclose(lens.probabilities.sum(-1), 1, rtol=1e-5)


def test_the_logit_lens_refuses_a_head_that_scores_positions() -> None:
    head = HeadSpec(n_outputs=2, task="answer_span")
    model = models.make(ModelConfig(encoder=models.stack(models.layer(multi_head(16, 4))), head=head))
    trace = run_trace(model, Inputs(ids=IDS), keep=LENS_SITES)
    with pytest.raises(TraceError, match="scores positions"):
        logit_lens(model, trace)


@pytest.mark.parametrize("change", [{"skip": False}, {"learned_scale": True}, {"after": NormSpec()}], ids=str)
def test_attribution_is_refused_where_the_stream_is_no_sum(change: dict[str, Any]) -> None:
    config = models.decoder_only()
    assert config.decoder is not None
    layer = config.decoder.layers[0]
    layer = dataclasses.replace(layer, feed_forward_residual=dataclasses.replace(layer.feed_forward_residual, **change))
    model = models.make(dataclasses.replace(config, decoder=models.stack(layer)))
    trace = run_trace(model, Inputs(ids=IDS), keep=ATTRIBUTION_SITES)
    with pytest.raises(TraceError, match="pre-norm"):
        logit_attribution(model, trace, position=0, output=0)


def test_attribution_is_refused_where_the_head_has_a_norm_of_its_own() -> None:
    config = models.decoder_only()
    assert config.head is not None
    model = models.make(dataclasses.replace(config, head=dataclasses.replace(config.head, norm=NormSpec())))
    trace = run_trace(model, Inputs(ids=IDS), keep=ATTRIBUTION_SITES)
    with pytest.raises(TraceError, match="reads the last layer directly"):
        logit_attribution(model, trace, position=0, output=0)


def test_attribution_is_refused_where_a_logit_is_no_sum() -> None:
    model = encoder_only()
    trace = run_trace(model, Inputs(ids=IDS))
    with pytest.raises(TraceError, match="output head"):
        logit_attribution(model, trace, position=0, output=0)


def test_a_cancelled_analysis_stops(traced: tuple[Trace, str]) -> None:
    trace, site = traced
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        head_statistics(trace, site, cancel=token)
