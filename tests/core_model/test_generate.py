"""Generation token by token: what is drawn, when it stops, and that its stitched attention is the single pass's."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import Phi3Config, Phi3ForCausalLM, TopKLogitsWarper, TopPLogitsWarper

from core_model.cancel import CancelToken
from core_model.checkpoint import open_checkpoint
from core_model.config import MaskSpec, RotaryPositions, RotaryScaling, SpecialTokens, multi_head
from core_model.errors import Cancelled, ConfigError, TraceError
from core_model.generate import Generation, Sampling, draw
from core_model.nn.transformer import Transformer
from core_model.trace import Inputs, run_trace
from core_model.trace import trace as trace_module

from . import models
from .analysis.models import MAX_LENGTH, N_HEADS, N_LAYERS, decoder_only, encoder_only
from .checkpoint.references import saved, seeded

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


STRETCHED = {
    "dynamic, at every token": RotaryScaling(kind="dynamic", factor=4.0, original_length=4),
    "dynamic, on the way": RotaryScaling(kind="dynamic", factor=4.0, original_length=9),
    "longrope, on the way": RotaryScaling(
        kind="longrope", original_length=9, short_factors=(1.0, 1.5), long_factors=(2.0, 7.0), attention_factor=1.1
    ),
    "longrope, from the prompt": RotaryScaling(
        kind="longrope", original_length=4, short_factors=(1.0, 1.5), long_factors=(2.0, 7.0)
    ),
    "longrope, within": RotaryScaling(
        kind="longrope", original_length=50, short_factors=(1.0, 1.5), long_factors=(2.0, 7.0)
    ),
}


@pytest.mark.parametrize("kind", STRETCHED)
def test_frequencies_that_change_with_the_length_stitch_into_the_single_pass_all_the_same(kind: str) -> None:
    position = RotaryPositions(n_rotated=4, scaling=STRETCHED[kind])
    model = models.make(models.decoder_only(multi_head(16, 4, mask=MaskSpec(causal=True), position=position)))
    generation = Generation(model, Inputs(ids=PROMPT), n_tokens=9, sampling=Sampling(temperature=0))
    drawn = [token.id for token in generation]
    stitched, single = generation.trace(), run_trace(model, Inputs(ids=generation.ids[:-1]))
    for layer in range(2):
        for head in range(4):
            got, expected = (trace.attention("decoder.self", layer, head) for trace in (stitched, single))
            np.testing.assert_allclose(got, expected, atol=1e-5, rtol=1e-4)
    np.testing.assert_allclose(models.logits_of(stitched), models.logits_of(single), atol=2e-5, rtol=1e-4)
    before = [generation.ids[: len(PROMPT) + step] for step in range(9)]
    assert drawn == [int(models.logits_of(run_trace(model, Inputs(ids=ids)))[-1].argmax()) for ids in before]
    changes = kind not in ("longrope, from the prompt", "longrope, within")
    assert [note.startswith("rotary frequencies changed") for note in stitched.notes] == [True] * changes


LOOKING_AHEAD = {
    "no mask": MaskSpec(),
    "window both ways": MaskSpec(window=3),
    "window and global tokens": MaskSpec(window=2, n_global=1),
    "prefix beyond the prompt": MaskSpec(causal=True, n_prefix=8),
}


@pytest.mark.parametrize("normalizer", ["softmax", "relu"])
@pytest.mark.parametrize("kind", LOOKING_AHEAD)
def test_where_earlier_tokens_look_at_later_ones_all_is_the_single_pass_and_said_so(kind: str, normalizer: Any) -> None:
    mask = LOOKING_AHEAD[kind]
    model = models.make(models.decoder_only(multi_head(16, 4, mask=mask, normalizer=normalizer)))
    generation = Generation(model, Inputs(ids=PROMPT[:3]), n_tokens=9, sampling=Sampling(temperature=0))
    drawn = [token.id for token in generation]
    stitched, single = generation.trace(), run_trace(model, Inputs(ids=generation.ids[:-1]))
    for head in range(4):
        got, expected = (trace.attention("decoder.self", 1, head) for trace in (stitched, single))
        np.testing.assert_allclose(got, expected, atol=1e-5, rtol=1e-4)
    before = [generation.ids[: 3 + step] for step in range(9)]
    assert drawn == [int(models.logits_of(run_trace(model, Inputs(ids=ids)))[-1].argmax()) for ids in before]
    assert [note.startswith("earlier tokens look at later ones: ") for note in stitched.notes] == [True]


def test_a_prefix_within_the_prompt_needs_no_second_pass() -> None:
    model = models.make(models.decoder_only(multi_head(16, 4, mask=MaskSpec(causal=True, n_prefix=6))))
    generation = _generated(model, 5)
    single = run_trace(model, Inputs(ids=generation.ids[:-1]))
    got, expected = (trace.attention("decoder.self", 1, 0) for trace in (generation.trace(), single))
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert not generation.trace().notes


def test_longrope_draws_what_the_library_draws_as_it_goes_over_to_the_long_factors(tmp_path: Path) -> None:
    """Phi-3 computes all anew at that token (`Phi3ForCausalLM.prepare_inputs_for_generation`)."""
    settings: dict[str, Any] = {
        **{"vocab_size": 23, "hidden_size": 24, "intermediate_size": 31, "num_hidden_layers": 3},
        **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "sliding_window": None},
        **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None, "original_max_position_embeddings": 9},
    }
    factors = {"short_factor": [1.0, 1.5, 2.0], "long_factor": [9.0, 5.0, 3.0]}
    rope = {"rope_type": "longrope", "rope_theta": 100.0, **factors}
    reference: Any = seeded(Phi3ForCausalLM(Phi3Config(**settings, rope_parameters=rope)))
    reference.set_attn_implementation("eager")
    expected = reference.generate(torch.tensor([PROMPT]), max_new_tokens=12, do_sample=False)[0].tolist()
    with closing(open_checkpoint(saved(reference, tmp_path))) as checkpoint:
        model = checkpoint.load_model()
    generation = Generation(model, Inputs(ids=PROMPT), n_tokens=12, sampling=Sampling(temperature=0))
    list(generation)
    assert list(generation.ids) == expected


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


@pytest.mark.parametrize(("k", "p"), [(5, 0.6), (10, 0.5), (3, 0.9), (8, 0.99)])
def test_top_p_is_taken_of_what_top_k_left_as_in_the_library(k: int, p: float) -> None:
    logits_V = torch.randn(30, generator=torch.Generator().manual_seed(1)) * 2
    ids: Any = None
    kept = TopPLogitsWarper(p)(ids, TopKLogitsWarper(k)(ids, logits_V[None]))[0].isfinite()
    generator = torch.Generator().manual_seed(0)
    drawn = {draw(logits_V, Sampling(top_k=k, top_p=p), generator).id for _ in range(2000)}
    assert drawn == set(kept.nonzero().flatten().tolist())


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


def test_a_prompt_longer_than_the_positions_of_the_model_is_refused_as_a_trace_of_it_is() -> None:
    prompt = np.resize(PROMPT, MAX_LENGTH + 2)
    with pytest.raises(TraceError, match=f"has {MAX_LENGTH + 2} tokens, but this model has positions for {MAX_LENGTH}"):
        next(Generation(decoder_only(), Inputs(ids=prompt), n_tokens=5))


def test_it_stops_when_asked() -> None:
    token = CancelToken()
    generation = Generation(decoder_only(), Inputs(ids=PROMPT), n_tokens=50, cancel=token)
    tokens = iter(generation)
    next(tokens)
    token.cancel()
    with pytest.raises(Cancelled):
        next(tokens)


def test_it_stops_within_the_step_of_its_prompt() -> None:
    token = CancelToken()
    model = decoder_only()
    model.output_stack.layer(0).feed_forward.register_forward_hook(lambda *given: token.cancel())
    model.output_stack.layer(1).register_forward_pre_hook(lambda *given: pytest.fail("the next layer ran"))
    with pytest.raises(Cancelled):
        next(iter(Generation(model, Inputs(ids=PROMPT), n_tokens=5, cancel=token)))


def test_a_step_that_was_stopped_leaves_nothing_behind_and_whoever_goes_on_gets_the_same_tokens() -> None:
    model = models.make(models.encoder_decoder())
    assert model.encoder is not None and model.decoder is not None
    inputs, sampling = Inputs(ids=PROMPT, decoder_ids=[2, 7]), Sampling(seed=3)
    undisturbed = Generation(model, inputs, n_tokens=5, sampling=sampling)
    expected = [token.id for token in undisturbed]
    generation, drawn = Generation(model, inputs, n_tokens=5, sampling=sampling), []
    for stopped, n_more in ((model.encoder.layer(1), 0), (model.decoder.layer(1), 2), (model.decoder.layer(1), 3)):
        hook = stopped.register_forward_hook(_stop)
        with pytest.raises(Cancelled):
            next(generation)
        hook.remove()
        drawn += [next(generation).id for _ in range(n_more)]
        if drawn:
            assert generation.trace().shape("decoder.self")[2:] == (1 + len(drawn), 1 + len(drawn))
    assert drawn == expected
    for site in undisturbed.trace().sites:
        got, want = (one.trace().attention(site, 1, 2) for one in (generation, undisturbed))
        np.testing.assert_array_equal(got, want)


def test_a_stop_while_all_is_computed_anew_leaves_what_was_there() -> None:
    model = models.make(models.decoder_only(multi_head(16, 4)))
    generation = Generation(model, Inputs(ids=PROMPT), n_tokens=5)
    drawn = [next(generation).id, next(generation).id]
    hook = model.output_stack.layer(1).register_forward_hook(_stop)
    with pytest.raises(Cancelled):
        next(generation)
    hook.remove()
    assert generation.trace().shape("decoder.self")[2:] == (7, 7)
    drawn += [token.id for token in generation]
    assert drawn == [token.id for token in Generation(model, Inputs(ids=PROMPT), n_tokens=5)]


def _stop(*given: object) -> None:
    raise Cancelled


def test_whoever_iterates_again_gets_the_tokens_that_were_still_to_come() -> None:
    model = decoder_only()
    expected = _generated(model, 6).ids
    generation = Generation(model, Inputs(ids=PROMPT), n_tokens=6)
    for _ in zip(range(2), generation, strict=False):
        pass
    list(generation)
    assert generation.ids == expected
    assert list(generation) == []
    assert generation.trace().shape("decoder.self")[2:] == (11, 11)


def test_between_two_tokens_gradients_are_as_the_caller_has_them() -> None:
    for _ in Generation(decoder_only(), Inputs(ids=PROMPT), n_tokens=2):
        assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def test_a_model_in_training_draws_without_dropout_and_stays_in_training() -> None:
    model = models.make(models.decoder_only(multi_head(16, 4, mask=MaskSpec(causal=True), dropout=0.5)))
    expected = _generated(model.eval(), temperature=0.0).ids
    model.train()
    model.output_stack.layer(0).eval()
    assert _generated(model, temperature=0.0).ids == expected
    assert [model.training, model.output_stack.layer(0).training, model.output_stack.layer(1).training] == [
        *(True, False, True)
    ]


def test_types_of_tokens_are_refused_as_those_still_to_be_drawn_have_none() -> None:
    with pytest.raises(TraceError, match="type_ids say nothing of tokens that are still to be drawn"):
        Generation(models.make(models.decoder_only()), Inputs(ids=PROMPT, type_ids=[0, 0, 0, 1, 1, 1]), n_tokens=1)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("logit", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_draw_no_token(temperature: float, logit: float) -> None:
    with pytest.raises(TraceError, match=f"the logits of the next token hold {logit}"):
        draw(torch.tensor([0.0, logit, 1.0]), Sampling(temperature=temperature), torch.Generator())


def test_the_smallest_temperature_draws_the_likeliest_token() -> None:
    token = draw(torch.tensor([0.0, 2.0, 1.0]), Sampling(temperature=1e-40), torch.Generator())
    assert (token.id, token.probability) == (1, 1.0)


def test_a_text_that_cannot_fit_is_refused_with_numbers_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    model = decoder_only()
    monkeypatch.setattr(trace_module, "available_memory", lambda device: 1000)
    with pytest.raises(TraceError, match=r"the input has 26 tokens: its trace needs 0\.0 GB .* 0\.0 GB are free"):
        Generation(model, Inputs(ids=PROMPT), n_tokens=20)


def test_a_model_that_writes_no_text_says_so() -> None:
    with pytest.raises(TraceError, match="no decoder"):
        Generation(encoder_only(), Inputs(ids=PROMPT), n_tokens=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -1.0),
        ("temperature", float("nan")),
        ("seed", 1 << 64),
        ("seed", 1.5),
        ("top_k", 0),
        ("top_k", 2.0),
        ("top_k", float("nan")),
        ("top_p", 0.0),
        ("top_p", 1.5),
    ],
)
def test_sampling_names_the_setting_that_is_out_of_range(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{name} is {value}"):
        Sampling(**{name: value})  # pyright: ignore[reportArgumentType]
