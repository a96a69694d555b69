"""Induction scores against their definition on the attention of the same sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core_model.analysis.induction import induction_scores
from core_model.errors import TraceError
from core_model.trace import Inputs, run_trace
from tests.core_model import models
from tests.core_model.counting import Watch

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


def test_a_model_that_reads_little_is_measured_on_as_much_as_it_reads_twice() -> None:
    model = decoder_only(max_length=13)
    np.testing.assert_array_equal(induction_scores(model), induction_scores(model, period=6))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"period": 1}, "period is 1: what followed a token"),
        ({"period": MAX_LENGTH}, rf"period is {MAX_LENGTH}: expected at most {MAX_LENGTH // 2}"),
        ({"n_sequences": 0}, "n_sequences is 0: expected at least 1"),
        ({"ids": (5, 5)}, rf"ids is \(5, 5\): expected 0 <= start < stop <= {VOCAB_SIZE}"),
        ({"ids": (0, VOCAB_SIZE + 1)}, rf"stop <= {VOCAB_SIZE}"),
    ],
    ids=str,
)
def test_what_cannot_be_measured_is_refused_with_its_limit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        induction_scores(decoder_only(), **options)


def test_a_long_sequence_makes_no_matrix_of_its_size() -> None:
    model = models.make(models.decoder_only())
    with Watch() as watch:
        induction_scores(model, period=1500, n_sequences=1)
    assert watch.largest < 3000 * 3000 / 4


def test_a_model_that_is_no_language_model_says_so() -> None:
    with pytest.raises(TraceError, match="decoder-only"):
        induction_scores(encoder_only())
