"""Induction scores against their definition on the attention of the same sequences."""

from __future__ import annotations

import numpy as np
import pytest

from core_model.analysis.induction import induction_scores
from core_model.errors import TraceError
from core_model.trace import Inputs, run_trace

from .models import MAX_LENGTH, N_HEADS, N_LAYERS, VOCAB_SIZE, decoder_only, encoder_only


def test_the_score_is_the_weight_on_what_followed_the_token_the_first_time() -> None:
    model, period = decoder_only(), 11
    sequence = np.random.default_rng(5).integers(0, VOCAB_SIZE, period)
    trace = run_trace(model, Inputs(ids=np.concatenate([sequence, sequence])))
    expected = np.zeros((N_LAYERS, N_HEADS))
    for layer in range(N_LAYERS):
        for head in range(N_HEADS):
            weights = trace.attention("decoder.self", layer, head)
            # In the second reading position i holds the token of position i - period; what followed it is one further.
            expected[layer, head] = np.mean([weights[i, i - period + 1] for i in range(period, 2 * period - 1)])
    got = induction_scores(model, period=period, n_sequences=1, seed=5)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_a_period_longer_than_the_model_can_read_twice_is_shortened() -> None:
    scores = induction_scores(decoder_only(), period=MAX_LENGTH, n_sequences=1)
    assert np.isfinite(scores).all()


def test_one_token_read_twice_is_refused() -> None:
    with pytest.raises(TraceError, match="period is 1: what followed a token"):
        induction_scores(decoder_only(), period=1)


def test_a_model_that_is_no_language_model_says_so() -> None:
    with pytest.raises(TraceError, match="decoder-only"):
        induction_scores(encoder_only())
