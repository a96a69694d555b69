"""One forward pass, remembered: sites, what is kept, numbers that do not depend on mode or dtype, cost, and errors."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from core_model.cancel import CancelToken
from core_model.config import (
    AlibiPositions,
    BucketedPositions,
    ExpertsSpec,
    FeedForwardSpec,
    LayerSpec,
    ModelConfig,
    PatchEmbedding,
    ResidualSpec,
    StackConfig,
    TokenEmbedding,
    VectorSpec,
    VectorsSpec,
    multi_head,
)
from core_model.counts import trace_bytes
from core_model.errors import Cancelled, TraceError
from core_model.sites import LAYER_ACTIVATIONS, MODEL_ACTIVATIONS, STACK_ACTIVATIONS
from core_model.trace import Inputs, run_trace
from core_model.trace.tap import CollectingTap
from core_model.trace.trace import Trace
from tests.core_model import models
from tests.core_model.models import ATTENTION_KINDS, CAUSAL, D_MODEL, N_HEADS, VOCAB, logits_of

IDS = [3, 14, 15, 9, 26, 5, 3]
TARGET = [1, 2, 7, 18]
CONFIGS = {
    "decoder": models.decoder_only(),
    "encoder": models.encoder_only(),
    "encoder-decoder": models.encoder_decoder(),
}


def inputs_for(name: str, ids=IDS) -> Inputs:
    return Inputs(ids=ids, decoder_ids=TARGET if name == "encoder-decoder" else None)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("decoder", {"decoder.self": (2, N_HEADS, 7, 7)}),
        ("encoder", {"encoder.self": (2, N_HEADS, 7, 7)}),
        (
            "encoder-decoder",
            {
                "encoder.self": (2, N_HEADS, 7, 7),
                "decoder.self": (3, N_HEADS, 4, 4),
                "decoder.cross": (3, N_HEADS, 4, 7),
            },
        ),
    ],
)
def test_sites_come_in_the_order_they_run_with_layers_heads_queries_and_keys(name, shapes):
    trace = run_trace(models.make(CONFIGS[name]), inputs_for(name))
    assert trace.sites == tuple(shapes)
    assert {site: trace.shape(site) for site in trace.sites} == shapes
    for site, (_, _, n_queries, n_keys) in shapes.items():
        assert trace.attention(site, 1, 2).shape == (n_queries, n_keys)


@pytest.mark.parametrize("name", CONFIGS)
def test_outputs_equal_those_of_the_model(name):
    model = models.make(CONFIGS[name])
    trace = run_trace(model, inputs_for(name))
    target = torch.tensor([TARGET]) if name == "encoder-decoder" else None
    with torch.inference_mode():
        hidden_BNC = model.hidden(torch.tensor([IDS]), target)
        logits_BNV = model.logits(hidden_BNC)
    np.testing.assert_allclose(trace.hidden, hidden_BNC[0], atol=2e-5, rtol=1e-4)
    np.testing.assert_allclose(logits_of(trace), logits_BNV[0], atol=2e-5, rtol=1e-4)


def test_a_model_without_a_head_has_hidden_states_and_no_logits():
    trace = run_trace(models.make(replace(CONFIGS["decoder"], head=None)), Inputs(ids=IDS))
    assert trace.logits is None
    assert trace.hidden.shape == (7, D_MODEL)


# Modes and dtypes


def dropping_out(rate: float = 0.5):
    """A model whose every sublayer drops out in training."""
    attention = multi_head(D_MODEL, N_HEADS, mask=CAUSAL, dropout=rate)
    layer = models.layer(attention, dropout=rate)
    return models.make(replace(CONFIGS["decoder"], decoder=models.stack(layer, layer)))


def test_a_trace_is_the_same_in_train_and_eval_mode_and_leaves_the_mode_as_it_was():
    model = dropping_out()
    expected = run_trace(model.eval(), Inputs(ids=IDS))
    trace = run_trace(model.train(), Inputs(ids=IDS))
    assert all(module.training for module in model.modules())
    frozen = model.output_stack.layer(0).eval()
    run_trace(model, Inputs(ids=IDS))
    assert model.training and not any(module.training for module in frozen.modules())
    assert np.array_equal(logits_of(trace), logits_of(expected))
    assert np.array_equal(trace.attention("decoder.self", 1, 0), expected.attention("decoder.self", 1, 0))


def test_attention_of_a_training_step_is_shown_before_dropout():
    """The first layer reads embeddings without dropout, so its attention is that of eval mode."""
    model = dropping_out().train()
    expected = run_trace(model, Inputs(ids=IDS))
    tap = CollectingTap()
    model(torch.tensor([IDS]), tap=tap).sum().backward()
    step = Trace(tap.heads, {}, hidden=expected.hidden, logits=None)
    weights = step.attention("decoder.self", 0, 1)
    np.testing.assert_allclose(weights, expected.attention("decoder.self", 0, 1), atol=1e-6)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert not np.allclose(step.attention("decoder.self", 1, 1), expected.attention("decoder.self", 1, 1), atol=1e-2)


@pytest.mark.parametrize("position", [AlibiPositions(), BucketedPositions(bidirectional=False)])
def test_a_trace_keeps_the_weights_it_was_made_with_when_training_goes_on(position):
    model = models.make(models.decoder_only(multi_head(D_MODEL, N_HEADS, mask=CAUSAL, position=position, sinks=True)))
    trace, again = (run_trace(model, Inputs(ids=IDS)) for _ in range(2))
    before = trace.attention("decoder.self", 0, 0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    assert np.array_equal(again.attention("decoder.self", 0, 0), before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ATTENTION_KINDS)
def test_a_half_precision_model_gives_float32_attention_whose_rows_sum_to_one(kind, dtype):
    attention = multi_head(D_MODEL, N_HEADS, **{"mask": CAUSAL, **ATTENTION_KINDS[kind]})
    model = models.make(models.decoder_only(attention)).to(dtype)
    ids = np.random.default_rng(0).integers(0, VOCAB, 300)
    trace = run_trace(model, Inputs(ids=ids))
    for head in range(N_HEADS):
        weights = trace.attention("decoder.self", 0, head)
        assert weights.dtype == np.float32
        sums = weights.sum(-1, dtype=np.float64)
        if kind == "sinks":
            assert (sums < 1 + 1e-6).all()
            assert sums.min() < 0.99
        else:
            np.testing.assert_allclose(sums, 1, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("size", [(300, 300), (75, 60)], ids=str)
def test_views_of_a_half_precision_model_are_exact_for_the_queries_and_keys_it_has(dtype, size):
    model = models.make(models.decoder_only()).to(dtype)
    ids = np.random.default_rng(0).integers(0, VOCAB, 300)
    trace = run_trace(model, Inputs(ids=ids), keep=["decoder.1.query", "decoder.1.key"])
    q_ND, k_MD = (trace.activation(f"decoder.1.{name}")[2].astype(np.float64) for name in ("query", "key"))
    e_NM = np.exp(q_ND @ k_MD.T * (D_MODEL // N_HEADS) ** -0.5) * np.tri(300)
    weights_NM = e_NM / e_NM.sum(-1, keepdims=True)
    expected = weights_NM.reshape(size[0], 300 // size[0], size[1], 300 // size[1]).max((1, 3))
    np.testing.assert_allclose(trace.view("decoder.self", 1, 2, size=size).values, expected, atol=1e-6)
    tile = trace.view("decoder.self", 1, 2, rows=(40, 290), cols=(10, 270))
    np.testing.assert_allclose(tile.values, weights_NM[40:290, 10:270], atol=1e-6)


# What is kept


def test_every_registered_activation_is_kept_under_its_name_with_its_shape():
    model = models.make(CONFIGS["encoder-decoder"])
    sizes = {"H": N_HEADS, "K": N_HEADS, "D": D_MODEL // N_HEADS, "C": D_MODEL, "F": 2 * D_MODEL, "V": VOCAB}
    trace = run_trace(model, inputs_for("encoder-decoder"), keep=["*"])
    decoder = {**sizes, "N": 4, "M": 4}
    for key, site in LAYER_ACTIVATIONS.items():
        letters = decoder | ({"M": 7} if key.startswith("cross") else {})
        for layer in range(3):
            kept = trace.activation(f"decoder.{layer}.{key}")
            assert kept.shape == tuple(letters[letter] for letter in site.shape), key
            assert kept.dtype == np.float32
        if not key.startswith("cross"):
            kept = trace.activation(f"encoder.1.{key}")
            assert kept.shape == tuple((sizes | {"N": 7, "M": 7})[letter] for letter in site.shape), key
    for key in STACK_ACTIVATIONS:
        assert trace.activation(f"decoder.{key}").shape == (4, D_MODEL)
    for key in MODEL_ACTIVATIONS:
        assert np.array_equal(trace.activation(key), logits_of(trace))


def test_the_stream_is_what_came_in_and_what_each_sublayer_added():
    trace = run_trace(models.make(CONFIGS["encoder-decoder"]), inputs_for("encoder-decoder"), keep=["decoder.*"])

    def at(name: str) -> np.ndarray:
        return trace.activation(f"decoder.{name}")

    assert np.array_equal(at("0.residual_before"), at("embedding"))
    for layer in range(3):
        added = sum(at(f"{layer}.{name}") for name in ("attention_output", "cross_output", "feed_forward_output"))
        np.testing.assert_allclose(at(f"{layer}.residual_after"), at(f"{layer}.residual_before") + added, atol=1e-5)
    assert np.array_equal(at("1.residual_before"), at("0.residual_after"))
    assert np.array_equal(at("final_hidden"), trace.hidden)


@pytest.mark.parametrize(("site", "prefix"), [("decoder.self", ""), ("decoder.cross", "cross_")])
def test_head_outputs_are_attention_times_values(site, prefix):
    trace = run_trace(models.make(CONFIGS["encoder-decoder"]), inputs_for("encoder-decoder"), keep=["decoder.2.*"])
    for head in range(N_HEADS):
        expected = trace.attention(site, 2, head) @ trace.activation(f"decoder.2.{prefix}value")[head]
        got = trace.activation(f"decoder.2.{prefix}head_output")[head]
        np.testing.assert_allclose(got, expected, atol=2e-5, rtol=1e-4)


def test_wildcards_keep_what_they_match_and_nothing_else():
    trace = run_trace(models.make(CONFIGS["decoder"]), Inputs(ids=IDS), keep=["decoder.*.residual_after", "logits"])
    assert trace.activation("decoder.1.residual_after").shape == (7, D_MODEL)
    with pytest.raises(TraceError) as error:
        trace.activation("decoder.1.query")
    assert str(error.value) == (
        "decoder.1.query was not kept in this trace "
        "(kept: decoder.0.residual_after, decoder.1.residual_after, logits): name it in run_trace(keep=...)"
    )


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (
            "decoder.1.residual_afer",
            r"keep names 'decoder.1.residual_afer', and this model has no such activation for this input: "
            r"the nearest are decoder.1.residual_after, ",
        ),
        ("*.cross_head_output", r"keep names '\*.cross_head_output'.*decoder.[01].head_output"),
        ("decoder.9.query", r"keep names 'decoder.9.query'.*decoder.[01].query"),
        ("Logits", r"keep names 'Logits'.*the nearest are logits"),
    ],
)
def test_a_name_of_nothing_to_keep_is_refused_with_the_nearest_there_are(keep, message):
    with pytest.raises(TraceError, match=message):
        run_trace(models.make(CONFIGS["decoder"]), Inputs(ids=IDS), keep=["*.residual_after", keep])


def test_without_keep_the_error_says_that_nothing_is_kept():
    with pytest.raises(TraceError, match=r"logits was not kept in this trace \(kept: nothing\)"):
        run_trace(models.make(CONFIGS["decoder"]), Inputs(ids=IDS)).activation("logits")


def test_a_mixture_of_experts_is_traced_like_any_other_layer():
    experts = FeedForwardSpec(d_hidden=8, experts=ExpertsSpec(n_experts=3, n_active=2))
    layer = replace(models.layer(multi_head(D_MODEL, N_HEADS, mask=CAUSAL)), feed_forward=experts)
    model = models.make(replace(CONFIGS["decoder"], decoder=models.stack(layer)))
    trace = run_trace(model, Inputs(ids=IDS), keep=["*.feed_forward_output"])
    assert trace.activation("decoder.0.feed_forward_output").any()


# Cost


@pytest.mark.parametrize("name", CONFIGS)
def test_bytes_held_are_those_foretold_from_the_config_and_grow_linearly_with_length(name):
    model = models.make(CONFIGS[name])
    held = {}
    for n in (10, 20, 40):
        ids, target = [1] * n, [2] * n if name == "encoder-decoder" else None
        trace = run_trace(model, Inputs(ids=ids, decoder_ids=target))
        outputs = trace.hidden.nbytes + logits_of(trace).nbytes
        held[n] = trace.n_bytes - outputs
        assert held[n] == trace_bytes(CONFIGS[name], n, n)
    assert held[40] == 2 * held[20] == 4 * held[10]


def test_bytes_count_what_was_asked_to_be_kept_once():
    model = models.make(CONFIGS["decoder"])
    plain = run_trace(model, Inputs(ids=IDS))
    kept = run_trace(model, Inputs(ids=IDS), keep=["decoder.0.residual_before", "decoder.embedding"])
    assert kept.n_bytes - plain.n_bytes == 7 * D_MODEL * 4  # one storage under two names


def test_progress_rises_to_one_as_attentions_are_done():
    seen: list[float] = []
    run_trace(models.make(CONFIGS["encoder-decoder"]), inputs_for("encoder-decoder"), progress=seen.append)
    assert seen == pytest.approx([n / 8 for n in range(1, 9)])


@pytest.mark.parametrize("given", [{"ids": [1, 2, 3]}, {"pixels": np.zeros((3, 8, 8))}], ids=["text", "pixels"])
def test_progress_of_one_tower_counts_its_attentions_alone(given):
    def tower(embedding) -> StackConfig:
        layer = LayerSpec(
            attention=multi_head(D_MODEL, N_HEADS),
            attention_residual=ResidualSpec(),
            feed_forward=FeedForwardSpec(d_hidden=32),
            feed_forward_residual=ResidualSpec(),
        )
        return StackConfig(d_model=D_MODEL, embedding=embedding, layers=(layer,) * 2)

    towers = ModelConfig(
        text=tower(TokenEmbedding(vocab_size=VOCAB, d_embedding=D_MODEL)),
        vision=tower(PatchEmbedding(image_size=(8, 8), patch_size=(4, 4))),
        vectors=VectorsSpec(text=VectorSpec(pooling="last"), vision=VectorSpec(pooling="first"), compared=True),
    )
    seen: list[float] = []
    run_trace(models.make(towers), Inputs(**given), progress=seen.append)
    assert seen == [0.5, 1.0]


def test_a_cancelled_pass_stops_before_the_next_layer():
    token, seen = CancelToken(), []

    def stop_after_the_first(fraction: float) -> None:
        seen.append(fraction)
        token.cancel()

    model = models.make(models.decoder_only(n_layers=5)).train()
    with pytest.raises(Cancelled):
        run_trace(model, Inputs(ids=IDS), cancel=token, progress=stop_after_the_first)
    assert seen == [0.2]
    assert model.training


def test_a_pass_is_cancelled_from_another_thread():
    token = CancelToken()
    thread = threading.Thread(target=token.cancel)
    thread.start()
    thread.join()
    with pytest.raises(Cancelled):
        run_trace(models.make(CONFIGS["decoder"]), Inputs(ids=IDS), cancel=token)


def long_head(**options) -> Trace:
    attention = multi_head(D_MODEL, N_HEADS, mask=CAUSAL, **options)
    ids = np.random.default_rng(0).integers(0, VOCAB, 3000)
    return run_trace(models.make(models.decoder_only(attention, n_layers=1)), Inputs(ids=ids))


def test_a_cancelled_view_stops_between_blocks():
    trace, token, seen = long_head(), CancelToken(), []

    def stop_after_the_first(fraction: float) -> None:
        seen.append(fraction)
        token.cancel()

    with pytest.raises(Cancelled):
        trace.view("decoder.self", 0, 0, size=(100, 100), cancel=token, progress=stop_after_the_first)
    assert len(seen) == 1
    assert seen[0] < 0.5


@pytest.mark.parametrize("ask", ["view", "exact view", "thumbnails"])
def test_row_normalisers_and_blocks_are_not_computed_for_a_cancelled_request(ask):
    trace, token = long_head(soft_cap=5.0), CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        if ask == "view":
            trace.view("decoder.self", 0, 0, size=(64, 64), cancel=token)
        elif ask == "exact view":
            trace.view("decoder.self", 0, 0, rows=(0, 64), cols=(0, 64), cancel=token)
        else:
            trace.thumbnails("decoder.self", cancel=token)


@pytest.mark.parametrize("part", [None, (1, 3000)], ids=["whole rows", "parts of rows"])
def test_an_exact_view_stops_between_blocks_of_rows(part):
    trace, token, seen = long_head(), CancelToken(), []

    def stop_after_the_first(fraction: float) -> None:
        seen.append(fraction)
        token.cancel()

    with pytest.raises(Cancelled):
        trace.view("decoder.self", 0, 0, cols=part, size=(3000, 3000), cancel=token, progress=stop_after_the_first)
    assert len(seen) == 1
    assert seen[0] < 0.5


@pytest.mark.parametrize(("size", "reduce"), [(100, "max"), (100, "mean"), (100, "sample"), (3000, "max")])
def test_progress_of_a_view_ends_at_one(size, reduce):
    seen: list[float] = []
    long_head().view("decoder.self", 0, 0, size=(size, size), reduce=reduce, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda trace: trace.view("decoder.self", 0, 0, size=800), r"size is 800"),
        (lambda trace: trace.view("decoder.self", 0, 0, size=(8.5, 8)), r"size is 8\.5: expected a whole number"),
        (lambda trace: trace.view("decoder.self", 0, 0, rows=(0.0, 3.0)), r"rows is 0\.0: expected a whole number"),
        (lambda trace: trace.attention("decoder.self", 0, 1.0), r"head is 1\.0: expected a whole number"),
        (lambda trace: trace.thumbnails("decoder.self", size=-1), r"size is -1: expected at least 1"),
        (lambda trace: trace.row_peaks("decoder.self", 0, 0, None, 2, reduce="minn"), r"reduce is 'minn'"),
    ],
)
def test_what_is_no_picture_is_refused_by_name_and_value(ask, message):
    with pytest.raises(TraceError, match=message):
        ask(run_trace(models.make(CONFIGS["decoder"]), Inputs(ids=IDS)))


def test_one_pattern_of_what_to_keep_needs_no_list():
    trace = run_trace(models.make(CONFIGS["decoder"]), Inputs(ids=IDS), keep="decoder.*.query")
    assert trace.activations[0] == "decoder.0.query"


# Inputs that do not fit the model


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("decoder", Inputs(ids=[3, VOCAB, 1]), r"ids\[1\] is 29: this model knows 0 to 28"),
        ("decoder", Inputs(ids=[3, 1, -1]), r"ids\[2\] is -1: this model knows 0 to 28"),
        ("decoder", Inputs(ids=IDS, type_ids=[0, 0, 0, 2, 0, 0, 0]), r"type_ids\[3\] is 2: this model knows 0 to 1"),
        ("decoder", Inputs(ids=IDS, decoder_ids=[1]), r"decoder_ids were given, but this model is one stack"),
        ("decoder", Inputs(embeddings=np.zeros((4, 5))), r"embeddings are 5 wide.*vectors of 16"),
        ("encoder-decoder", Inputs(ids=IDS), r"give decoder_ids"),
        ("encoder-decoder", Inputs(ids=IDS, decoder_ids=[99]), r"decoder_ids\[0\] is 99: this model knows 0 to 28"),
        ("encoder", Inputs(ids=[1] * 65), r"the input has 65 tokens, but this model has positions for 64"),
        (
            "decoder",
            Inputs(ids=IDS, decoder_embeddings=np.zeros((2, D_MODEL))),
            r"decoder_embeddings were given, but this model is one stack",
        ),
        (
            "encoder-decoder",
            Inputs(ids=IDS, decoder_embeddings=np.zeros((4, 5))),
            r"decoder_embeddings are 5 wide: this model takes vectors of 16",
        ),
    ],
)
def test_an_input_that_does_not_fit_names_axis_value_and_limit(name, inputs, message):
    with pytest.raises(TraceError, match=message):
        run_trace(models.make(CONFIGS[name]), inputs)


def test_vectors_in_the_place_of_ids_give_the_same_trace():
    model = models.make(CONFIGS["encoder-decoder"])
    table = model.encoder.embedding.token.weight.detach().numpy()
    by_ids = run_trace(model, inputs_for("encoder-decoder"))
    by_vectors = run_trace(model, Inputs(embeddings=table[IDS], decoder_embeddings=table[TARGET]))
    assert np.array_equal(logits_of(by_ids), logits_of(by_vectors))


def test_activations_of_a_trace_may_be_fed_back_as_vectors():
    """They are read-only, and nothing may warn about that."""
    model = models.make(CONFIGS["decoder"])
    first = run_trace(model, Inputs(ids=IDS), keep=["decoder.embedding"])
    again = run_trace(model, Inputs(embeddings=first.activation("decoder.embedding")))
    assert logits_of(again).shape == logits_of(first).shape
