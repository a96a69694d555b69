"""Edits of a forward pass: nothing where they change nothing, and exactly what their names say elsewhere."""

import numpy as np
import pytest
import torch

from core_model.analysis.head_statistics import head_statistics
from core_model.config import AlibiPositions, MaskSpec, NormSpec, QueryKeyNorm, multi_head
from core_model.errors import TraceError
from core_model.nn.tap import Tap
from core_model.trace import Inputs, Trace, run_trace
from core_model.trace.edits import AblateHead, Edit, PatchSite, ReplacePattern, ScaleHead
from tests.core_model import models
from tests.core_model.counting import Watch
from tests.core_model.dense import visible_matrix
from tests.core_model.models import CAUSAL, D_MODEL, N_HEADS, VOCAB, logits_of

HEAD_SIZE = D_MODEL // N_HEADS
INPUTS = Inputs(ids=[3, 14, 15, 9, 26, 5, 3], decoder_ids=[1, 2, 7, 18, 28])
SITES = ["encoder.self", "decoder.self", "decoder.cross"]
KEEP = ["*.head_output", "*.cross_head_output", "*.value", "*.cross_value"]


@pytest.fixture(scope="module")
def model():
    return models.make(models.encoder_decoder())


def traced(model, *edits: Edit) -> Trace:
    return run_trace(model, INPUTS, keep=KEEP, edits=edits)


def output_name(site: str, layer: int) -> str:
    stack, kind = site.split(".")
    return f"{stack}.{layer}.{'cross_' if kind == 'cross' else ''}head_output"


def assert_same_bits(one: Trace, other: Trace) -> None:
    assert np.array_equal(logits_of(one), logits_of(other))
    for site in SITES:
        for layer in range(one.shape(site)[0]):
            for head in range(N_HEADS):
                assert np.array_equal(one.attention(site, layer, head), other.attention(site, layer, head))


@pytest.mark.parametrize("site", SITES)
def test_a_scale_of_one_changes_no_bit(model, site):
    assert_same_bits(traced(model, ScaleHead(site=site, layer=1, head=2, factor=1.0)), traced(model))


@pytest.mark.parametrize(
    "name",
    [
        "encoder.embedding",
        "encoder.1.query",
        "decoder.0.cross_value",
        "decoder.2.residual_after",
        "decoder.final_hidden",
    ],
)
def test_a_patch_with_the_same_values_changes_no_bit(model, name):
    source = run_trace(model, INPUTS, keep=[name])
    patch = PatchSite(name=name, value=source.activation_tensor(name))
    assert_same_bits(traced(model, patch), traced(model))


@pytest.mark.parametrize("site", SITES)
def test_an_ablated_head_adds_nothing_through_the_output_projection(model, site):
    """The same as zero in that head's slice of the projection's input."""

    edited = output_name(site, 1)

    class ZeroSlice(Tap):
        def activation(self, site: str, x: torch.Tensor) -> torch.Tensor:
            if site != edited:
                return x
            x_BNE = x.transpose(1, 2).flatten(2).clone()
            x_BNE[..., 2 * HEAD_SIZE : 3 * HEAD_SIZE] = 0
            return x_BNE.unflatten(-1, (N_HEADS, HEAD_SIZE)).transpose(1, 2)

    with torch.inference_mode():
        ids_BN, decoder_ids_BM = (torch.from_numpy(ids)[None] for ids in (INPUTS.ids, INPUTS.decoder_ids))
        expected = model(ids_BN, decoder_ids_BM, tap=ZeroSlice())[0]
    trace = traced(model, AblateHead(site=site, layer=1, head=2))
    np.testing.assert_allclose(logits_of(trace), expected, atol=1e-5)
    assert not trace.activation(output_name(site, 1))[2].any()
    assert not np.allclose(logits_of(trace), logits_of(traced(model)), atol=1e-3)


def test_a_head_is_ablated_by_its_mean_over_positions(model):
    before = traced(model).activation("decoder.1.head_output")
    after = traced(model, AblateHead(site="decoder.self", layer=1, head=3, by="mean")).activation(
        "decoder.1.head_output"
    )
    np.testing.assert_allclose(after[3], np.broadcast_to(before[3].mean(0), (5, HEAD_SIZE)), atol=1e-6)
    assert np.array_equal(after[:3], before[:3])


def test_a_scaled_head_hands_on_its_output_times_the_factor(model):
    before = traced(model).activation("decoder.1.cross_head_output")
    edit = ScaleHead(site="decoder.cross", layer=1, head=0, factor=-2.5)
    after = traced(model, edit).activation("decoder.1.cross_head_output")
    np.testing.assert_allclose(after[0], -2.5 * before[0], rtol=1e-6)
    assert np.array_equal(after[1:], before[1:])


@pytest.mark.parametrize("mask", [CAUSAL, MaskSpec(causal=True, window=3), MaskSpec()], ids=lambda mask: mask.label)
def test_a_uniform_pattern_is_the_mean_of_the_visible_values(mask):
    model = models.make(models.decoder_only(multi_head(D_MODEL, N_HEADS, mask=mask, n_key_heads=2)))
    edit = ReplacePattern(site="decoder.self", layer=0, head=3, pattern="uniform")
    trace = run_trace(model, Inputs(ids=INPUTS.ids), keep=["*.head_output", "*.value"], edits=[edit])
    values = trace.activation("decoder.0.value")[1]  # the key head that query heads 2 and 3 share
    visible = ~trace.view("decoder.self", 0, 3).masked
    expected = np.stack([values[row].mean(0) for row in visible])
    np.testing.assert_allclose(trace.activation("decoder.0.head_output")[3], expected, atol=1e-6)


@pytest.mark.parametrize(("pattern", "keys"), [("previous_token", [0, 0, 1, 2, 3]), ("identity", [0, 1, 2, 3, 4])])
def test_a_head_made_to_look_at_one_token_hands_on_its_value(model, pattern, keys):
    trace = traced(model, ReplacePattern(site="decoder.self", layer=2, head=1, pattern=pattern))
    values = trace.activation("decoder.2.value")[1]
    np.testing.assert_allclose(trace.activation("decoder.2.head_output")[1], values[keys], atol=1e-6)


def test_a_replaced_pattern_leaves_the_other_heads_alone(model):
    before = traced(model).activation("decoder.2.head_output")
    after = traced(model, ReplacePattern(site="decoder.self", layer=2, head=1, pattern="uniform"))
    assert np.array_equal(np.delete(after.activation("decoder.2.head_output"), 1, 0), np.delete(before, 1, 0))


def test_a_patch_moves_an_activation_from_one_input_to_another(model):
    other = Inputs(ids=[7, 7, 7, 7, 7, 7, 7], decoder_ids=[1, 2, 7, 18, 28])
    source = run_trace(model, other, keep=["encoder.final_hidden"])
    patch = PatchSite(name="encoder.final_hidden", value=source.activation_tensor("encoder.final_hidden"))
    patched = run_trace(model, INPUTS, edits=[patch])
    assert np.array_equal(logits_of(patched), logits_of(source))
    assert np.array_equal(patched.attention("encoder.self", 0, 0), traced(model).attention("encoder.self", 0, 0))


def test_patched_queries_are_those_the_attention_is_drawn_from(model):
    kept = run_trace(model, INPUTS, keep=["decoder.1.query"]).activation_tensor("decoder.1.query")
    trace = run_trace(model, INPUTS, edits=[PatchSite(name="decoder.1.query", value=torch.zeros_like(kept))])
    visible = ~trace.view("decoder.self", 1, 0).masked
    np.testing.assert_allclose(trace.attention("decoder.self", 1, 0), visible / visible.sum(-1, keepdims=True))


def test_edits_apply_in_the_order_they_are_given(model):
    ablate = AblateHead(site="decoder.self", layer=0, head=1)
    scale = ScaleHead(site="decoder.self", layer=0, head=1, factor=3.0)
    assert_same_bits(traced(model, ablate, scale), traced(model, ablate))


def test_a_patch_with_the_tensor_that_is_there_already_is_applied(model):
    """What leaves one layer is what enters the next: both names keep one tensor."""
    names = ["decoder.0.residual_after", "decoder.1.residual_before"]
    kept = run_trace(model, INPUTS, keep=names)
    patches = [PatchSite(name=name, value=kept.activation_tensor(name)) for name in names]
    assert patches[0].value is patches[1].value
    assert_same_bits(traced(model, *patches), traced(model))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            AblateHead(site="decoder.self", layer=9, head=0),
            r"AblateHead\(site='decoder.self', layer=9.*changed nothing",
        ),
        (AblateHead(site="decoderself", layer=0, head=0), r"AblateHead\(site='decoderself'.*changed nothing"),
        (ScaleHead(site="encoder.cross", layer=0, head=0, factor=2.0), r"ScaleHead.*changed nothing"),
        (ReplacePattern(site="decoder.self", layer=9, head=0, pattern="uniform"), r"ReplacePattern.*changed nothing"),
        (AblateHead(site="decoder.self", layer=0, head=4), r"head is 4: layer 0 of decoder.self has heads 0 to 3"),
        (AblateHead(site="decoder.self", layer=0, head=-1), r"head is -1"),
        (ReplacePattern(site="decoder.cross", layer=0, head=7, pattern="uniform"), r"head is 7: .* heads 0 to 3"),
        (
            ReplacePattern(site="decoder.cross", layer=0, head=1, pattern="identity"),
            r"pattern is 'identity': no key of decoder.cross is a query's own",
        ),
        (ReplacePattern(site="decoder.cross", layer=0, head=1, pattern="previous_token"), r"only 'uniform' can be"),
        (PatchSite(name="decoder.0.keys", value=torch.zeros(1)), r"PatchSite\(name='decoder.0.keys'\) changed nothing"),
        (
            PatchSite(name="decoder.0.residual_after", value=torch.zeros(1, 4, D_MODEL)),
            r"decoder.0.residual_after has shape \(4, 16\): it is \(5, 16\) for this input",
        ),
        (
            PatchSite(name="decoder.0.residual_after", value=torch.zeros(1, 5, 24)),
            r"patch from the same model and an input of the same length",
        ),
    ],
)
def test_an_edit_of_what_the_model_has_not_is_refused_by_name(model, edit, message):
    with pytest.raises(TraceError, match=message):
        traced(model, edit)


# What is shown of a replaced pattern is what the model used


PATTERNS = ["uniform", "previous_token", "identity"]
ATTENTIONS = {
    "plain": {"mask": CAUSAL},
    "grouped, window": {"mask": MaskSpec(causal=True, window=5, n_global=2), "n_key_heads": 2},
    "prefix": {"mask": MaskSpec(causal=True, n_prefix=4)},
    "symmetric window": {"mask": MaskSpec(window=3)},
    "self only": {"mask": MaskSpec(causal=True, window=1)},
    "sinks, soft cap": {"mask": CAUSAL, "sinks": True, "soft_cap": 3.0},
    "relu": {"mask": CAUSAL, "normalizer": "relu"},
    "alibi": {"mask": CAUSAL, "position": AlibiPositions()},
    "normed, full": {"mask": MaskSpec(), "query_key_norm": QueryKeyNorm(norm=NormSpec(kind="rms"))},
}


def put_in(pattern: str, visible_NM: np.ndarray) -> np.ndarray:
    """The matrix that the pattern's docstring describes."""
    n = len(visible_NM)
    if pattern == "uniform":
        return visible_NM / visible_NM.sum(-1, keepdims=True)
    key_N = np.arange(n)
    if pattern == "previous_token":
        before_N = np.maximum(key_N - 1, 0)
        key_N = np.where(visible_NM[key_N, before_N], before_N, key_N)
    return np.eye(n)[key_N]


@pytest.mark.parametrize("kind", ATTENTIONS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_view_of_a_replaced_head_shows_the_matrix_that_was_put_in(kind, pattern):
    n, site = 41, "decoder.self"
    model = models.make(models.decoder_only(multi_head(D_MODEL, N_HEADS, **ATTENTIONS[kind])))
    ids = Inputs(ids=np.random.default_rng(0).integers(0, VOCAB, n))
    edit = ReplacePattern(site=site, layer=0, head=2, pattern=pattern)
    trace, plain = run_trace(model, ids, keep=["decoder.0.*"], edits=[edit]), run_trace(model, ids)
    visible_NM = visible_matrix(ATTENTIONS[kind]["mask"], range(n), range(n)).numpy()
    matrix = put_in(pattern, visible_NM)

    np.testing.assert_allclose(trace.attention(site, 0, 2), matrix, atol=1e-6)
    values_ND = trace.activation("decoder.0.value")[2 if "n_key_heads" not in ATTENTIONS[kind] else 1]
    np.testing.assert_allclose(trace.activation("decoder.0.head_output")[2], matrix @ values_ND, atol=1e-5)

    tile = trace.view(site, 0, 2, rows=(9, 30), cols=(3, 29))
    np.testing.assert_allclose(tile.values, matrix[9:30, 3:29], atol=1e-6)
    assert np.array_equal(tile.masked, ~visible_NM[9:30, 3:29])
    cells = matrix[:40, :40].reshape(8, 5, 10, 4)
    largest = trace.view(site, 0, 2, rows=(0, 40), cols=(0, 40), size=(8, 10))
    np.testing.assert_allclose(largest.values, cells.max((1, 3)), atol=1e-6)
    mean = trace.view(site, 0, 2, rows=(0, 40), cols=(0, 40), size=(8, 10), reduce="mean")
    np.testing.assert_allclose(mean.values, cells.mean((1, 3)), atol=1e-6)
    sample = trace.view(site, 0, 2, size=(7, 7), reduce="sample")
    np.testing.assert_allclose(sample.values, matrix[::6, ::6], atol=1e-6)
    np.testing.assert_allclose(np.nan_to_num(trace.thumbnails(site, n)[0, 2]), matrix, atol=1e-6)
    np.testing.assert_allclose(trace.row(site, 0, 2, 17), matrix[17], atol=1e-6)
    cell = trace.cell(site, 0, 2, 17, 16)
    assert (cell.weight, cell.score) == (pytest.approx(matrix[17, 16], abs=1e-6), None)

    others = trace.thumbnails(site, n)[0, [0, 1, 3]]
    assert np.array_equal(others, plain.thumbnails(site, n)[0, [0, 1, 3]], equal_nan=True)
    assert np.array_equal(trace.attention(site, 0, 1), plain.attention(site, 0, 1))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_statistics_are_of_the_matrix_that_was_put_in(pattern):
    n = 23
    model = models.make(models.decoder_only())
    edit = ReplacePattern(site="decoder.self", layer=1, head=3, pattern=pattern)
    statistics = head_statistics(run_trace(model, Inputs(ids=[5] * n), edits=[edit]), "decoder.self")
    matrix = put_in(pattern, np.tril(np.ones((n, n), dtype=bool)))
    assert statistics.diagonal[1, 3] == pytest.approx(np.diag(matrix).mean(), abs=1e-6)
    assert statistics.previous_token[1, 3] == pytest.approx(np.diag(matrix, -1).mean(), abs=1e-6)
    assert statistics.first_token[1, 3] == pytest.approx(matrix[:, 0].mean(), abs=1e-6)


def test_a_replaced_pattern_of_cross_attention_is_shown_as_it_was_used(model):
    trace = traced(model, ReplacePattern(site="decoder.cross", layer=1, head=0, pattern="uniform"))
    expected = np.full((5, 7), 1 / 7)
    np.testing.assert_allclose(trace.attention("decoder.cross", 1, 0), expected, atol=1e-6)
    values_MD = trace.activation("decoder.1.cross_value")[0]
    np.testing.assert_allclose(trace.activation("decoder.1.cross_head_output")[0], expected @ values_MD, atol=1e-5)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_replaced_without_holding_a_matrix(pattern):
    n = 6000
    model = models.make(models.decoder_only(n_layers=1))
    ids = Inputs(ids=np.random.default_rng(0).integers(0, VOCAB, n))
    with Watch() as watch:
        trace = run_trace(model, ids, edits=[ReplacePattern(site="decoder.self", layer=0, head=1, pattern=pattern)])
        view = trace.view("decoder.self", 0, 1, size=(500, 500))
    assert watch.largest < n * n / 4
    expected = {"uniform": 1 / np.arange(1, n + 1, 12), "previous_token": np.ones(500), "identity": np.ones(500)}[
        pattern
    ]
    np.testing.assert_allclose(np.diagonal(view.values), expected, rtol=1e-4)


def test_bytes_of_a_trace_count_the_keys_that_were_chosen():
    model, n = models.make(models.decoder_only()), 50
    edit = ReplacePattern(site="decoder.self", layer=0, head=1, pattern="identity")
    plain, edited = (run_trace(model, Inputs(ids=[1] * n), edits=edits) for edits in ([], [edit]))
    assert 8 * n <= edited.n_bytes - plain.n_bytes <= 8 * n + 64
