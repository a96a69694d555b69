"""Analyses where something has no meaning: it is said or refused, and no plausible number stands in its place."""

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
from core_model.analysis.logit_lens import LENS_SITES, logit_lens
from core_model.analysis.rollout import rollout
from core_model.analysis.value_weighted import value_site, value_weighted
from core_model.analysis.words import merge_words
from core_model.config import ConvolutionSpec, MaskSpec, NormSpec, multi_head
from core_model.errors import TraceError
from core_model.nn.embeddings import Tokens
from core_model.nn.scores import HeadInputs
from core_model.trace import Inputs, run_trace
from core_model.trace.edits import AblateHead, PatchSite
from core_model.trace.trace import Trace
from tests.core_model import models

from .models import VOCAB_SIZE, decoder_only

SITE = "decoder.self"
IDS = list(np.random.default_rng(1).integers(0, VOCAB_SIZE, 23))


def _one_head(q_BHND: torch.Tensor, k_BKMD: torch.Tensor, **options: Any) -> Trace:
    heads = HeadInputs(q_BHND=q_BHND, k_BKMD=k_BKMD, **options)
    return Trace({(SITE, 0): heads}, {}, hidden=np.zeros((1, 1), np.float32), logits=None)


@pytest.mark.parametrize("share", [0.5, 0.99, 1 - 1e-5])
def test_what_a_sink_takes_changes_neither_span_nor_distance_of_the_keys(share: float) -> None:
    """Four keys seen equally: a sink of logit s takes e^s / (4 + e^s)."""
    spec = multi_head(2, 1, sinks=True)
    sinks_H = torch.tensor([np.log(4 * share / (1 - share))], dtype=torch.float32)
    trace = _one_head(*torch.zeros(2, 1, 1, 4, 2), spec=spec, sinks_H=sinks_H)
    assert trace.attention(SITE, 0, 0).sum(1) == pytest.approx(1 - share, rel=1e-4)
    found = head_statistics(trace, SITE)
    assert found.effective_span[0, 0] == pytest.approx(4, rel=1e-6)
    assert found.distance[0, 0] == pytest.approx((6 + 4 + 4 + 6) / 16, rel=1e-6)
    assert trace.cell(SITE, 0, 0, 1, 2).row_entropy == pytest.approx(np.log(4), rel=1e-6)


def test_relu_is_measured_by_the_shares_of_its_weights_and_rows_it_leaves_empty_are_not() -> None:
    q_BHND, k_BKMD = torch.randn(2, 1, 1, 9, 2, generator=torch.Generator().manual_seed(3))
    q_BHND[0, 0, 4] = 0
    trace = _one_head(q_BHND, k_BKMD, spec=multi_head(2, 1, normalizer="relu"))
    score_NM = (q_BHND[0, 0] @ k_BKMD[0, 0].T).clamp(min=0).double().numpy()
    is_kept = score_NM.any(1)
    assert not is_kept.all() and is_kept.sum() > 5
    share_NM = score_NM[is_kept] / score_NM[is_kept].sum(1, keepdims=True)
    entropy_N = -(share_NM * np.log(np.where(share_NM > 0, share_NM, 1))).sum(1)
    distance_N = (share_NM * abs(np.flatnonzero(is_kept)[:, None] - np.arange(9))).sum(1)
    found = head_statistics(trace, SITE)
    assert found.entropy[0, 0] == pytest.approx(entropy_N.mean(), rel=1e-5)
    assert found.distance[0, 0] == pytest.approx(distance_N.mean(), rel=1e-5)
    assert trace.cell(SITE, 0, 0, 4, 2).row_entropy is None
    assert trace.cell(SITE, 0, 0, 0, 2).row_entropy == pytest.approx(entropy_N[0], rel=1e-5)


def test_a_head_without_any_weight_has_no_entropy_and_no_distance() -> None:
    trace = _one_head(*torch.zeros(2, 1, 1, 4, 2), spec=multi_head(2, 1, normalizer="relu"))
    found = head_statistics(trace, SITE)
    assert np.isnan([found.entropy, found.effective_span, found.distance]).all()
    assert (found.first_token == 0).all()


def test_a_row_that_is_no_number_is_not_left_out_of_a_mean() -> None:
    q_BHND, k_BKMD = torch.zeros(2, 1, 1, 4, 2)
    q_BHND[0, 0, 2] = float("nan")
    found = head_statistics(_one_head(q_BHND, k_BKMD, spec=multi_head(2, 1)), SITE)
    assert np.isnan([found.entropy, found.distance]).all()


def _half_masked(**options: Any) -> tuple[Trace, np.ndarray]:
    """A head whose first three keys are padding, so that the first three rows of a causal mask see none."""
    generator = torch.Generator().manual_seed(0)
    q_BHND, k_BKMD = torch.randn(2, 1, 1, 9, 4, generator=generator)
    key_mask_BM = torch.arange(9)[None] >= 3
    spec = multi_head(4, 1, mask=MaskSpec(causal=True), **options)
    sinks_H = torch.tensor([0.7]) if spec.sinks else None
    trace = _one_head(q_BHND, k_BKMD, spec=spec, key_mask_BM=key_mask_BM, sinks_H=sinks_H)
    return trace, trace.attention(SITE, 0, 0).astype(np.float64)


@pytest.mark.parametrize("options", [{}, {"sinks": True}, {"normalizer": "relu"}], ids=str)
def test_rows_that_see_no_key_are_not_counted_in_a_mean_over_rows(options: Any) -> None:
    trace, a = _half_masked(**options)
    assert not a[:3].any()
    found = head_statistics(trace, SITE)
    kept = a[a.any(1)]
    share = kept / kept.sum(1, keepdims=True)
    entropy = -(share * np.log(np.where(share > 0, share, 1))).sum(1)
    assert found.entropy[0, 0] == pytest.approx(entropy.mean(), rel=1e-5)
    assert found.previous_token[0, 0] == pytest.approx(a.diagonal(-1)[2:].mean(), rel=1e-5)


@pytest.mark.parametrize("n", [0, -3])
def test_pictures_and_peaks_of_no_pixel_are_refused(n: int) -> None:
    trace = run_trace(decoder_only(), Inputs(ids=IDS))
    with pytest.raises(TraceError, match=f"size is {n}: expected at least 1"):
        trace.thumbnails(SITE, size=n)
    for reduce in ("max", "sample"):
        with pytest.raises(TraceError, match=f"n is {n}: expected at least 1"):
            trace.row_peaks(SITE, 0, 0, None, n, reduce)


def test_weighted_attention_in_no_pixels_is_refused() -> None:
    model = decoder_only()
    trace = run_trace(model, Inputs(ids=IDS), keep=(value_site(SITE, 0),))
    with pytest.raises(TraceError, match=r"size is \(5, 0\): a view needs at least 1 x 1 pixels"):
        value_weighted(model, trace, SITE, 0, 0, size=(5, 0))


@pytest.mark.parametrize("n", [0, -1])
def test_fewer_than_one_link_or_output_is_refused(n: int) -> None:
    model = decoder_only()
    trace = run_trace(model, Inputs(ids=IDS), keep=LENS_SITES)
    for asked in (lambda: top_links(trace, SITE, 0, 0, n=n), lambda: logit_lens(model, trace, n=n)):
        with pytest.raises(TraceError, match=f"n is {n}: expected at least 1"):
            asked()


def test_a_row_that_sees_no_key_keeps_to_itself_in_rollout() -> None:
    trace, a = _half_masked()
    expected = (a + np.eye(9)) / (a + np.eye(9)).sum(1, keepdims=True)
    np.testing.assert_allclose(rollout(trace, SITE), expected, atol=1e-6)


def test_an_attribution_that_does_not_add_up_is_refused() -> None:
    model = decoder_only()
    kept = (*ATTRIBUTION_SITES, "*.attention_output")
    other = run_trace(model, Inputs(ids=IDS[::-1]), keep=kept)
    name = "decoder.0.attention_output"
    patch = PatchSite(name=name, value=other.activation_tensor(name))
    patched = run_trace(model, Inputs(ids=IDS), keep=ATTRIBUTION_SITES, edits=[patch])
    with pytest.raises(TraceError, match=r"the parts add up to .* but the logit is .* patched"):
        logit_attribution(model, patched, position=20, output=3)


def test_an_attribution_of_an_ablated_head_adds_up() -> None:
    model = decoder_only()
    edit = AblateHead(site=SITE, layer=1, head=0)
    trace = run_trace(model, Inputs(ids=IDS), keep=ATTRIBUTION_SITES, edits=[edit])
    assert logit_attribution(model, trace, position=20, output=3).heads[1, 0] == 0


def test_an_attribution_of_a_stream_far_from_0_is_no_less_true_for_its_rounding() -> None:
    """A norm subtracts what all dimensions have in common: what is left of each term is coarse, and adds up."""
    model = decoder_only()
    assert isinstance(model.output_stack.embedding, Tokens) and model.output_stack.embedding.token is not None
    with torch.no_grad():
        model.output_stack.embedding.token.weight += 300 * model.output_stack.embedding.token.weight.std()
    trace = run_trace(model, Inputs(ids=IDS), keep=ATTRIBUTION_SITES)
    for output in range(VOCAB_SIZE):
        logit_attribution(model, trace, position=20, output=output)


def test_an_attribution_beside_a_convolution_is_refused() -> None:
    config = models.decoder_only()
    assert config.decoder is not None
    convolution = ConvolutionSpec(kernel_size=3, activation="gelu", norm=NormSpec())
    model = models.make(
        dataclasses.replace(config, decoder=dataclasses.replace(config.decoder, convolution=convolution))
    )
    trace = run_trace(model, Inputs(ids=IDS), keep=ATTRIBUTION_SITES)
    with pytest.raises(TraceError, match="without a convolution"):
        logit_attribution(model, trace, position=0, output=0)


@pytest.mark.parametrize(("name", "index"), [("position", 23), ("position", -1), ("output", 999)])
def test_a_logit_there_is_not_is_named(name: str, index: int) -> None:
    model = decoder_only()
    trace = run_trace(model, Inputs(ids=IDS), keep=ATTRIBUTION_SITES)
    with pytest.raises(TraceError, match=rf"{name} is {index}: there are logits of {name}s 0 to \d+"):
        logit_attribution(model, trace, **{"position": 0, "output": 0, name: index})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([0, 0, 1], "query_words has 3 entries: there are 23 tokens"),
        ([0] * 30, "query_words has 30 entries"),
        ([0] * 5 + [2] * 18, "must count the words from 0"),
        ([1] * 23, "must count the words from 0"),
        ([0, 1, 0] + [1] * 20, "must count the words from 0"),
    ],
)
def test_words_that_are_not_those_of_the_tokens_are_refused(words: list[int], message: str) -> None:
    trace = run_trace(decoder_only(), Inputs(ids=IDS))
    with pytest.raises(TraceError, match=message):
        merge_words(trace, SITE, 0, 0, words, [0] * 23)


def test_a_window_behind_global_tokens_is_walked_in_the_pieces_it_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the work grows with the length, not with its square."""
    monkeypatch.setattr(blocks, "_CELLS", 512)
    ids = np.random.default_rng(1).integers(0, VOCAB_SIZE, 380)
    trace = run_trace(decoder_only(mask=MaskSpec(causal=True, window=9, n_global=2)), Inputs(ids=ids))
    head = trace.head(SITE, 0, 1)
    pieces = [(rows, keys) for rows, keys, _ in blocks.row_blocks(head)]
    assert sum((rows.stop - rows.start) * (keys.stop - keys.start) for rows, keys in pieces) < 380 * 40
    whole = trace.attention(SITE, 0, 1)
    np.testing.assert_allclose(token_totals(trace, SITE, 0, 1).given, whole.sum(1), rtol=1e-5)
    np.testing.assert_allclose(token_totals(trace, SITE, 0, 1).received, whole.sum(0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [(4, 4), (64, 64)], ids=["pooled", "exact"])
def test_a_way_to_pool_that_there_is_not_is_refused(size: tuple[int, int]) -> None:
    trace = run_trace(decoder_only(), Inputs(ids=IDS))
    reduce: Any = "median"
    with pytest.raises(TraceError, match="reduce is 'median': expected one of 'max', 'mean', 'sample'"):
        trace.view(SITE, 0, 0, size=size, reduce=reduce)


def test_cross_attention_in_some_layers_only_is_told_by_the_numbers_of_those_layers() -> None:
    config = models.encoder_decoder(n_layers=4)
    assert config.decoder is not None
    layers = [
        layer if index in (1, 3) else dataclasses.replace(layer, cross_attention=None)
        for index, layer in enumerate((*config.decoder.layers, *config.decoder.layers)[:4])
    ]
    decoder = dataclasses.replace(config.decoder, layers=tuple(layers))
    trace = run_trace(models.make(dataclasses.replace(config, decoder=decoder)), Inputs(ids=IDS, decoder_ids=IDS[:7]))
    assert trace.layers("decoder.cross") == (1, 3)
    found = head_statistics(trace, "decoder.cross").first_token
    expected = [[trace.attention("decoder.cross", i, h)[:, 0].mean() for h in range(4)] for i in (1, 3)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    with pytest.raises(TraceError, match=r"layer is 2: decoder\.cross has layers 1, 3"):
        trace.attention("decoder.cross", 2, 0)
