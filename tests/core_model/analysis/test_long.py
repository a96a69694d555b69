"""Every analysis of a long input equals the plain computation on the whole matrix, and makes no tensor of its size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from core_model.analysis.head_statistics import head_statistics
from core_model.analysis.links import token_totals, top_links
from core_model.analysis.logit_lens import LENS_SITES, logit_lens
from core_model.analysis.rollout import rollout
from core_model.analysis.value_weighted import value_site, value_weighted
from core_model.analysis.words import merge_words
from core_model.config import HeadSpec, MaskSpec, ModelConfig, multi_head
from core_model.trace import Inputs, Trace, run_trace
from tests.core_model import models
from tests.core_model.counting import Watch

N = 4000
SITE = "decoder.self"
MOST = 1 << 21
"""Elements of the largest tensor: an eighth of the matrix of 4000 tokens, at any length."""
IDS = np.random.default_rng(0).integers(0, models.VOCAB, N)
WORDS = np.unique(np.sort(np.random.default_rng(1).integers(0, 3000, N)), return_inverse=True)[1]


@pytest.fixture(scope="module")
def model():
    attention = multi_head(models.D_MODEL, models.N_HEADS, mask=MaskSpec(causal=True), n_key_heads=2)
    return models.make(models.decoder_only(attention, n_layers=2))


@pytest.fixture(scope="module")
def trace(model) -> Trace:
    return run_trace(model, Inputs(ids=IDS), keep=[*LENS_SITES, value_site(SITE, 1)])


@pytest.fixture(scope="module")
def matrix(trace: Trace) -> np.ndarray:
    """The whole of layer 1, head 3."""
    return trace.attention(SITE, 1, 3).astype(np.float64)


@pytest.fixture(scope="module")
def flow(trace: Trace) -> np.ndarray:
    """Three rows of the product of both layers, each the mean of its heads and the identity."""
    flow_RN = np.eye(N)[3990:3993]
    for layer in (1, 0):
        mean_NM = np.mean([trace.attention(SITE, layer, head) for head in range(4)], axis=0, dtype=np.float64)
        flow_RN = 0.5 * flow_RN @ mean_NM + 0.5 * flow_RN
    return flow_RN


@pytest.fixture(autouse=True)
def nothing_large(trace: Trace, matrix: np.ndarray, flow: np.ndarray) -> Iterator[None]:
    """In a test, once what it is compared with was made."""
    with Watch() as watch:
        yield
    assert watch.largest <= MOST


def test_statistics(trace: Trace, matrix: np.ndarray):
    special = np.arange(N) % 7 == 0
    got = head_statistics(trace, SITE, ids=IDS.tolist(), special=special.tolist())
    query, key = np.arange(N)[:, None], np.arange(N)
    logs_NM = np.log(np.where(matrix > 0, matrix, 1))
    expected = {
        "entropy": -(matrix * logs_NM).sum(1).mean(),
        "distance": (matrix * abs(query - key)).sum(1).mean(),
        "first_token": matrix[:, 0].mean(),
        "diagonal": np.diag(matrix).mean(),
        "previous_token": np.diag(matrix, -1).mean(),
        "same_token": (matrix * ((IDS[:, None] == IDS) & (query != key))).sum(1).mean(),
        "special_tokens": matrix[:, special].sum(1).mean(),
    }
    for name, value in expected.items():
        assert getattr(got, name)[1, 3] == pytest.approx(value, rel=2e-4), name


def test_links_and_totals(trace: Trace, matrix: np.ndarray):
    links, totals = top_links(trace, SITE, 1, 3, n=30), token_totals(trace, SITE, 1, 3)
    np.testing.assert_allclose(links.weight, np.sort(matrix.ravel())[::-1][:30], rtol=1e-5)
    np.testing.assert_allclose(matrix[links.query, links.key], links.weight, rtol=1e-5)
    np.testing.assert_allclose(totals.received, matrix.sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(totals.given, matrix.sum(1), rtol=1e-5)


def test_words(trace: Trace, matrix: np.ndarray):
    """Some words of a long text: all of them would be a matrix again."""
    got = merge_words(trace, SITE, 1, 3, WORDS.tolist(), WORDS.tolist(), words=(1000, 1020))
    member = (WORDS[:, None] == np.arange(WORDS[-1] + 1)).astype(float)
    expected = (matrix @ member)[(WORDS >= 1000) & (WORDS < 1020)]
    n_tokens = member.sum(0)[1000:1020]
    expected = np.add.reduceat(expected, np.cumsum([0, *n_tokens[:-1]]).astype(int)) / n_tokens[:, None]
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_rollout(trace: Trace, flow: np.ndarray):
    """Some rows of a long text."""
    np.testing.assert_allclose(rollout(trace, SITE, rows=(3990, 3993)), flow, atol=1e-6)


def test_value_weighted_attention(model, trace: Trace, matrix: np.ndarray):
    v_MD = trace.activation(value_site(SITE, 1))[1].astype(np.float64)  # of query heads 2 and 3
    output_CD = model.decoder.layer(1).attention.output.weight.detach().numpy()[:, 12:16]
    moved_NM = matrix * np.linalg.norm(v_MD @ output_CD.T, axis=1)
    got = value_weighted(model, trace, SITE, 1, 3, size=(40, 50))
    np.testing.assert_allclose(got, moved_NM.reshape(40, 100, 50, 80).max((1, 3)), rtol=1e-4, atol=1e-6)


def test_logit_lens():
    """Of many outputs: logits of all positions at once would be larger than the limit."""
    n_outputs = 3000
    stack = models.decoder_stack(n_layers=2)
    model = models.make(ModelConfig(decoder=stack, head=HeadSpec(n_outputs=n_outputs, task="language_model")))
    streams = {f"decoder.{layer}.residual_after": torch.randn(1, N, 16) for layer in (0, 1)}
    trace = Trace({}, streams, hidden=np.zeros((N, 16), np.float32), logits=None)
    with torch.inference_mode():
        lens = logit_lens(model, trace, n=2)
        assert lens.ids.shape == lens.probabilities.shape == (2, N, 2)
        x_C = model.decoder.final_norm(trace.activation_tensor("decoder.1.residual_after")[0, 2345])
        probability_V = (model.head.output.weight @ x_C).softmax(-1)
    assert lens.ids[1, 2345, 0] == int(probability_V.argmax())
    assert lens.probabilities[1, 2345, 0] == pytest.approx(float(probability_V.max()), rel=1e-4)
