"""Token by token with kept keys and values is the same as all tokens at once: outputs, attention, and what is drawn."""

import numpy as np
import pytest
import torch

from core_model.config import (
    AlibiPositions,
    BucketedPositions,
    MaskSpec,
    NormSpec,
    QueryKeyNorm,
    RotaryPositions,
    RotaryScaling,
    multi_head,
)
from core_model.generate import Generation, Sampling
from core_model.nn.cache import KeyValueCache
from core_model.trace import Inputs, run_trace
from core_model.trace.tap import CollectingTap
from core_model.trace.trace import Trace
from tests.core_model import models
from tests.core_model.models import CAUSAL, D_MODEL, N_HEADS, logits_of

KINDS = {
    "plain": {},
    "grouped": {"n_key_heads": 2},
    "window": {"mask": MaskSpec(causal=True, window=3)},
    "window with globals": {"mask": MaskSpec(causal=True, window=3, n_global=2)},
    "rotary halves": {"position": RotaryPositions(n_rotated=4)},
    "partial rotary, interleaved": {"position": RotaryPositions(n_rotated=2, layout="interleaved")},
    "yarn": {
        "position": RotaryPositions(n_rotated=4, scaling=RotaryScaling(kind="yarn", factor=4.0, original_length=16))
    },
    "alibi": {"position": AlibiPositions()},
    "buckets": {"position": BucketedPositions(n_buckets=8, max_distance=10, bidirectional=False)},
    "capped with sinks": {"soft_cap": 4.0, "sinks": True},
    "relu": {"normalizer": "relu"},
    "normed queries and keys": {"query_key_norm": QueryKeyNorm(norm=NormSpec(kind="rms"))},
}
IDS = [3, 14, 15, 9, 26, 5, 3, 5, 8, 9, 7, 9]
SOURCE = [2, 7, 18, 28, 18, 2, 8]


def attention_of(kind: str):
    return multi_head(D_MODEL, N_HEADS, **{"mask": CAUSAL, **KINDS[kind]})


@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_fed_token_by_token_equals_one_pass(kind):
    model = models.make(models.decoder_only(attention_of(kind)))
    whole = run_trace(model, Inputs(ids=IDS))
    cache = KeyValueCache()
    for position, token in enumerate(IDS):
        tap = CollectingTap()
        with torch.inference_mode():
            logits_BNV = model(torch.tensor([[token]]), cache=cache, tap=tap)
        np.testing.assert_allclose(logits_BNV[0, 0], logits_of(whole)[position], atol=2e-5, rtol=1e-4)
        step = Trace(tap.heads, {}, hidden=whole.hidden, logits=None)
        for layer in range(2):
            for head in range(N_HEADS):
                row = step.attention("decoder.self", layer, head)
                assert row.shape == (1, position + 1)
                expected = whole.attention("decoder.self", layer, head)[position, : position + 1]
                np.testing.assert_allclose(row[0], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("chunks", [(1, 11), (5, 7), (4, 4, 4), (11, 1)])
@pytest.mark.parametrize("kind", ["plain", "window with globals", "rotary halves", "capped with sinks"])
def test_a_decoder_fed_in_chunks_equals_one_pass(kind, chunks):
    model = models.make(models.decoder_only(attention_of(kind)))
    cache = KeyValueCache()
    with torch.inference_mode():
        expected_BNV = model(torch.tensor([IDS]))
        parts = [model(ids, cache=cache) for ids in torch.tensor([IDS]).split(chunks, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), expected_BNV, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["plain", "rotary halves", "alibi"])
def test_an_encoder_decoder_fed_token_by_token_equals_one_pass(kind):
    model = models.make(models.encoder_decoder(attention_of(kind)))
    whole = run_trace(model, Inputs(ids=SOURCE, decoder_ids=IDS))
    cache = KeyValueCache()
    with torch.inference_mode():
        memory_BMC = model.encode(torch.tensor([SOURCE]))
        for position, token in enumerate(IDS):
            tap = CollectingTap()
            hidden_BNC = model.decode(torch.tensor([[token]]), memory_BMC, cache=cache, tap=tap)
            np.testing.assert_allclose(hidden_BNC[0, 0], whole.hidden[position], atol=2e-5, rtol=1e-4)
            step = Trace(tap.heads, {}, hidden=whole.hidden, logits=None)
            for site, n_keys in (("decoder.self", position + 1), ("decoder.cross", len(SOURCE))):
                expected = whole.attention(site, 2, 1)[position, :n_keys]
                np.testing.assert_allclose(step.attention(site, 2, 1)[0], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_generation_is_stitched_into_the_lower_triangle_of_one_pass(kind):
    """transformers#26174, llama3#155: a prompt of 6 tokens, then one token at a time."""
    model = models.make(models.decoder_only(attention_of(kind)))
    generation = Generation(model, Inputs(ids=IDS[:6]), n_tokens=5, sampling=Sampling(temperature=0))
    drawn = [token.id for token in generation]
    fed = [*IDS[:6], *drawn[:-1]]
    stitched, whole = generation.trace(), run_trace(model, Inputs(ids=fed))
    np.testing.assert_allclose(logits_of(stitched), logits_of(whole), atol=2e-5, rtol=1e-4)
    assert drawn == logits_of(whole)[5:].argmax(-1).tolist()
    assert stitched.shape("decoder.self") == (2, N_HEADS, 10, 10)
    for layer in range(2):
        for head in range(N_HEADS):
            matrix = stitched.attention("decoder.self", layer, head)
            assert (matrix == np.tril(matrix)).all()
            np.testing.assert_allclose(matrix, whole.attention("decoder.self", layer, head), atol=1e-5, rtol=1e-4)


def test_a_translation_is_stitched_with_its_cross_attention():
    model = models.make(models.encoder_decoder())
    generation = Generation(model, Inputs(ids=SOURCE, decoder_ids=[1]), n_tokens=4, sampling=Sampling(temperature=0))
    drawn = [token.id for token in generation]
    stitched = generation.trace()
    whole = run_trace(model, Inputs(ids=SOURCE, decoder_ids=[1, *drawn[:-1]]))
    assert set(stitched.sites) == {"encoder.self", "decoder.self", "decoder.cross"}
    for site in stitched.sites:
        np.testing.assert_allclose(
            stitched.attention(site, 1, 2), whole.attention(site, 1, 2), atol=1e-5, rtol=1e-4, err_msg=site
        )
