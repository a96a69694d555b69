"""Generation token by token: what is drawn, when it stops, and that its stitched attention is the single pass's."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from core_model.cancel import CancelToken
from core_model.config import SpecialTokens
from core_model.errors import Cancelled, ConfigError, TraceError
from core_model.generate import Generation, Sampling, draw
from core_model.nn.transformer import Transformer
from core_model.trace import Inputs, run_trace

from .analysis.models import MAX_LENGTH, N_HEADS, N_LAYERS, decoder_only, encoder_only

PROMPT = [3, 1, 4, 1, 5, 9]


def _generated(model: Transformer, n_tokens: int = 12, **options: object) -> Generation:
    generation = Generation(model, Inputs(ids=PROMPT), n_tokens=n_tokens, sampling=Sampling(**options))  # pyright: ignore[reportArgumentType]
    list(generation)
    return generation


def test_a_prompt_of_six_and_its_continuation_stitch_into_one_lower_triangle() -> None:
    model = decoder_only()
    generation = _generated(model)
    stitched, single = generation.trace(), run_trace(model, Inputs(ids=generation.ids[:-1]))
    assert stitched.shape("decoder.self") == (N_LAYERS, N_HEADS, 17, 17)
    for layer in range(N_LAYERS):
        for head in range(N_HEADS):
            got = stitched.attention("decoder.self", layer, head)
            np.testing.assert_allclose(got, single.attention("decoder.self", layer, head), atol=5e-6)
            assert not np.triu(got, 1).any()
    assert stitched.logits is not None and single.logits is not None
    np.testing.assert_allclose(stitched.logits, single.logits, rtol=1e-4, atol=1e-4)


def test_greedy_draws_the_likeliest_token_of_a_full_pass() -> None:
    model = decoder_only()
    ids = list(_generated(model, temperature=0.0).ids)
    for n in range(len(PROMPT), len(ids)):
        logits = run_trace(model, Inputs(ids=ids[:n])).logits
        assert logits is not None
        assert ids[n] == int(logits[-1].argmax())


def test_one_seed_draws_the_same_tokens_and_another_draws_others() -> None:
    model = decoder_only()
    draws = [_generated(model, seed=seed, temperature=8.0).ids for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_top_k_draws_only_from_the_k_likeliest() -> None:
    logits = torch.tensor([0.0, 3.0, 2.0, 1.0])
    generator = torch.Generator().manual_seed(0)
    assert {draw(logits, Sampling(top_k=2), generator).id for _ in range(200)} == {1, 2}


def test_top_p_draws_from_the_smallest_set_that_reaches_p() -> None:
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    generator = torch.Generator().manual_seed(0)
    assert {draw(logits, Sampling(top_p=0.7), generator).id for _ in range(300)} == {0, 1}
    assert {draw(logits, Sampling(top_p=0.4), generator).id for _ in range(50)} == {0}


def test_temperature_sharpens_the_distribution_it_draws_from() -> None:
    logits = torch.tensor([0.0, 1.0])
    token = draw(logits, Sampling(temperature=0.5, top_k=1), torch.Generator())
    assert token.probability == pytest.approx(1 / (1 + np.exp(-2.0)), rel=1e-6)


def test_it_stops_at_the_end_token() -> None:
    model = decoder_only()
    first = _generated(model, 1, temperature=0.0).ids[-1]
    model.config = dataclasses.replace(model.config, special=SpecialTokens(end=first))
    assert len(_generated(model, 9, temperature=0.0).ids) == len(PROMPT) + 1


def test_it_stops_at_the_last_position_of_the_model() -> None:
    model = decoder_only()
    prompt = np.resize(PROMPT, MAX_LENGTH - 2)
    generation = Generation(model, Inputs(ids=prompt), n_tokens=50)
    list(generation)
    assert len(generation.ids) == MAX_LENGTH + 1


def test_it_stops_when_asked() -> None:
    token = CancelToken()
    generation = Generation(decoder_only(), Inputs(ids=PROMPT), n_tokens=50, cancel=token)
    tokens = iter(generation)
    next(tokens)
    token.cancel()
    with pytest.raises(Cancelled):
        next(tokens)


def test_a_model_that_writes_no_text_says_so() -> None:
    with pytest.raises(TraceError, match="no decoder"):
        Generation(encoder_only(), Inputs(ids=PROMPT), n_tokens=1)


@pytest.mark.parametrize(("name", "value"), [("temperature", -1.0), ("top_k", 0), ("top_p", 0.0), ("top_p", 1.5)])
def test_sampling_names_the_setting_that_is_out_of_range(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{name} is {value}"):
        Sampling(**{name: value})  # pyright: ignore[reportArgumentType]
