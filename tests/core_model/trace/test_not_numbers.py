"""What is not a number is never drawn as one: NaN weights and scores that overflow show as NaN, masked cells as 0."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core_model.config import MaskSpec, multi_head
from core_model.nn.attend import attend
from core_model.nn.scores import HeadInputs
from core_model.nn.transformer import Transformer
from core_model.trace import Inputs, run_trace
from core_model.trace.scores import HeadScores
from core_model.trace.trace import Trace
from core_model.trace.views import pool
from tests.core_model.analysis.models import decoder_only

N = 40
SPEC = multi_head(8, 1, mask=MaskSpec(causal=True))


def _spoilt(how: str) -> HeadInputs:
    """One head whose row 7 cannot be computed, with the normalisers the kernel of the forward pass gives."""
    q, k = torch.randn(2, 1, 1, N, 8, generator=torch.Generator().manual_seed(0))
    k[0, 0, :8] = k[0, 0, :8].abs()
    q[0, 0, 7] = float("nan") if how == "NaN" else 3e38
    heads = HeadInputs(spec=SPEC, q_BHND=q, k_BKMD=k)
    logsumexp = attend(heads, k, want_logsumexp=True)[1]
    return HeadInputs(spec=SPEC, q_BHND=q, k_BKMD=k, logsumexp_BHN=logsumexp)


@pytest.mark.parametrize("how", ["NaN", "overflow"])
def test_a_row_that_is_no_number_is_nan_where_it_sees_and_0_where_it_is_masked(how: str) -> None:
    whole = HeadScores(_spoilt(how), 0).weights(slice(0, N), slice(0, N)).numpy()
    assert np.isnan(whole[7, :8]).all()
    assert (whole[7, 8:] == 0).all()
    np.testing.assert_allclose(np.delete(whole, 7, axis=0).sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize("how", ["NaN", "overflow"])
def test_tiles_samples_and_overviews_say_the_same(how: str) -> None:
    heads = _spoilt(how)
    tile = HeadScores(heads, 0).weights(slice(6, 9), slice(0, 12)).numpy()
    assert np.isnan(tile[1, :8]).all()
    assert np.isfinite(np.delete(tile, 1, axis=0)).all()
    for reduce in ("max", "mean", "sample"):
        picture = pool(HeadScores(heads, 0), slice(7, N), slice(0, N), (11, 10), reduce).weights.numpy()
        assert np.isnan(picture[0, 0]), reduce
        assert np.isfinite(picture[2:]).all(), reduce


@pytest.mark.parametrize("options", [{}, {"soft_cap": 4.0}, {"sinks": True}], ids=["plain", "capped", "sinks"])
def test_a_head_that_is_no_number_is_masked_where_it_was_and_leaves_its_neighbour_alone(options) -> None:
    spec = multi_head(16, 2, mask=MaskSpec(causal=True), **options)
    q, k = torch.randn(2, 1, 2, N, 8, generator=torch.Generator().manual_seed(0))
    q[0, 0, 7] = float("nan")
    heads = HeadInputs(spec=spec, q_BHND=q, k_BKMD=k, sinks_H=torch.zeros(2) if spec.sinks else None)
    trace = Trace({("decoder.self", 0): heads}, {}, hidden=np.zeros((1, 1), np.float32), logits=None)
    above = np.triu_indices(N, 1)
    spoilt, sound = trace.thumbnails("decoder.self", N)[0]
    assert np.isnan(spoilt[7, :8]).all()
    assert np.isnan(sound[above]).all()
    assert np.isfinite(sound[np.tril_indices(N)]).all()
    whole, part = trace.view("decoder.self", 0, 0), trace.view("decoder.self", 0, 0, size=(20, 20))
    assert (whole.values[above] == 0).all()
    assert trace.cell("decoder.self", 0, 0, 7, 3).rank is None
    assert trace.cell("decoder.self", 0, 1, 7, 3).rank is not None
    assert whole.masked[above].all()
    assert np.array_equal(part.masked, np.triu(np.ones((20, 20), bool), 1))


def _with(value: float) -> Transformer:
    model = decoder_only()
    with torch.no_grad():
        for part in ("query", "key"):
            model.get_parameter(f"decoder.layers.1.attention.{part}.weight")[0, 0] = value
    return model


def test_a_trace_names_the_layers_whose_attention_is_not_a_number() -> None:
    ids = Inputs(ids=[1, 2, 3, 4])
    assert run_trace(decoder_only(), ids).not_numbers() == {}
    assert run_trace(_with(float("nan")), ids).not_numbers() == {"decoder.self": (1,)}
    assert run_trace(_with(1e25), ids).not_numbers() == {"decoder.self": (1,)}
