"""What is measured of a trace does not depend on autocast being on where it is measured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from core_model.analysis.direct_logit import logit_attribution
from core_model.analysis.logit_lens import layer_logits, logit_lens
from core_model.analysis.rollout import rollout
from core_model.analysis.value_weighted import value_norms, value_weighted
from core_model.nn.transformer import Transformer
from core_model.trace import Inputs, Trace, run_trace

from .models import VOCAB_SIZE, decoder_only

SITE = "decoder.self"
IDS = np.random.default_rng(1).integers(0, VOCAB_SIZE, 23)

ANALYSES: dict[str, Callable[[Transformer, Trace], np.ndarray | None]] = {
    "rollout": lambda _, trace: rollout(trace, SITE),
    "value norms": lambda model, trace: value_norms(model, trace, SITE, 1, 2),
    "value weighted": lambda model, trace: value_weighted(model, trace, SITE, 1, 2),
    "logit lens": lambda model, trace: logit_lens(model, trace).probabilities,
    "layer logits": lambda model, trace: layer_logits(model, trace, 0).numpy(),
    "direct logit": lambda model, trace: logit_attribution(model, trace, 20, 3).heads,
    "forward pass": lambda model, _: run_trace(model, Inputs(ids=IDS)).attention(SITE, 1, 2),
}


@pytest.mark.parametrize("name", ANALYSES)
def test_under_autocast_the_numbers_are_the_same(name: str) -> None:
    model = decoder_only()
    trace = run_trace(model, Inputs(ids=IDS), keep=("*",))
    expected = ANALYSES[name](model, trace)
    with torch.autocast("cpu", torch.bfloat16):
        found = ANALYSES[name](model, trace)
        assert torch.is_autocast_enabled("cpu")
    assert expected is not None and found is not None
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * abs(expected).max())
