"""The first coarse picture of a long input: exact weights of some cells, labelled so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from core_model.cancel import CancelToken
from core_model.config import AlibiPositions, AttentionSpec, MaskSpec, multi_head
from core_model.errors import Cancelled
from core_model.nn.positions import alibi_slopes
from core_model.nn.scores import HeadInputs
from core_model.trace import views
from core_model.trace.scores import HeadScores
from core_model.trace.views import pool, row_peaks

N = 210
SPECS = {
    "causal": multi_head(8, 1, mask=MaskSpec(causal=True)),
    "window": multi_head(8, 1, mask=MaskSpec(window=30)),
    "soft-capped": multi_head(8, 1, soft_cap=2.0),
    "relu": multi_head(8, 1, mask=MaskSpec(causal=True), normalizer="relu"),
    "sinks": multi_head(8, 1, sinks=True),
    "alibi": multi_head(8, 1, mask=MaskSpec(causal=True), position=AlibiPositions()),
}


def _head(spec: AttentionSpec) -> HeadInputs:
    generator = torch.Generator().manual_seed(3)
    q, k = torch.randn(2, 1, 1, N, 8, generator=generator) * 2
    slopes = alibi_slopes(spec.position, 1) if isinstance(spec.position, AlibiPositions) else None
    sinks = torch.ones(1) if spec.sinks else None
    return HeadInputs(spec=spec, q_BHND=q, k_BKMD=k, bias_weights=slopes, sinks_H=sinks)


@pytest.mark.parametrize("name", SPECS)
def test_a_sample_is_the_exact_weight_of_the_first_cell_of_each_pixel(name: str) -> None:
    heads = _head(SPECS[name])
    whole = HeadScores(heads, 0).weights(slice(0, N), slice(0, N)).numpy()
    picture = pool(HeadScores(heads, 0), slice(10, N), slice(0, N), (40, 30), "sample")
    assert picture.cells == (5, 7)
    np.testing.assert_allclose(picture.weights.numpy(), whole[10::5, ::7], rtol=1e-5, atol=1e-7)
    masked = HeadScores(heads, 0).masked(slice(0, N), slice(0, N)).numpy()
    np.testing.assert_array_equal(picture.masked.numpy(), masked[10::5, ::7])


def test_a_sample_computes_the_normalisers_of_its_own_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    head = HeadScores(_head(SPECS["causal"]), 0)
    monkeypatch.setattr(head, "prepare", lambda cancel=None: pytest.fail("all rows were normalised"))
    pool(head, slice(0, N), slice(0, N), (40, 30), "sample")


def test_a_sample_of_very_long_rows_takes_cells_of_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_SAMPLE_SCORES", {True: 20 * N, False: 7 * N + N // 2})
    heads = _head(SPECS["soft-capped"])
    whole = HeadScores(heads, 0).weights(slice(0, N), slice(0, N)).numpy()
    prepared = HeadScores(heads, 0)
    prepared.prepare()
    assert pool(prepared, slice(0, N), slice(0, N), (40, 30), "sample").cells == (-(-N // 20), 7)
    picture = pool(HeadScores(heads, 0), slice(0, N), slice(0, N), (40, 30), "sample")
    assert picture.cells == (-(-N // 7), 7)
    np.testing.assert_allclose(picture.weights.numpy(), whole[:: -(-N // 7), ::7], rtol=1e-5, atol=1e-7)
    pooled = pool(HeadScores(heads, 0), slice(0, N), slice(0, N), (40, 30))
    assert pooled.cells == (-(-N // 40), 7)


def test_a_sample_uses_the_normalisers_the_forward_pass_made() -> None:
    heads = _head(SPECS["causal"])
    made = replace(heads, logsumexp_BHN=torch.full((1, 1, N), 100.0))
    picture = pool(HeadScores(made, 0), slice(0, N), slice(0, N), (40, 30), "sample")
    assert picture.weights.max() < 1e-20


def test_a_sample_stops_when_asked() -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        pool(HeadScores(_head(SPECS["causal"]), 0), slice(0, N), slice(0, N), (40, 30), "sample", cancel=token)


@pytest.mark.parametrize("name", SPECS)
def test_row_peaks_are_the_largest_weight_of_each_row_over_all_keys(name: str) -> None:
    heads = _head(SPECS[name])
    whole = HeadScores(heads, 0).weights(slice(0, N), slice(0, N)).numpy().max(1)
    sampled = row_peaks(HeadScores(heads, 0), slice(10, N), 40, "sample").numpy()
    np.testing.assert_allclose(sampled, whole[10::5], rtol=1e-5)
    pooled = row_peaks(HeadScores(heads, 0), slice(10, N), 40).numpy()
    np.testing.assert_allclose(pooled, whole[10:].reshape(40, 5).max(1), rtol=1e-5)
