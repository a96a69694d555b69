"""What a pass and its pictures do not depend on and do not change: gradients, autocast, default dtype, the device."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from core_model.analysis.head_statistics import head_statistics
from core_model.config import (
    AlibiPositions,
    DisentangledPositions,
    DistanceTable,
    MaskSpec,
    NormSpec,
    QueryKeyNorm,
    multi_head,
)
from core_model.nn.positions import alibi_slopes
from core_model.trace import Inputs, run_trace
from core_model.trace.scores import HeadScores
from core_model.trace.tap import CollectingTap
from tests.core_model import models
from tests.core_model.models import ATTENTION_KINDS, CAUSAL, D_MODEL, N_HEADS

IDS = [3, 14, 15, 9, 26, 5, 3]


@pytest.mark.parametrize("kind", ATTENTION_KINDS)
def test_whoever_watches_a_training_step_gets_the_gradients_of_one_unwatched(kind):
    model = models.make(
        models.decoder_only(multi_head(D_MODEL, N_HEADS, **{"mask": CAUSAL, **ATTENTION_KINDS[kind]}))
    ).train()
    found = []
    for tap in (None, CollectingTap()):
        model.zero_grad()
        model(torch.tensor([IDS]), tap=tap).square().sum().backward()
        found.append([parameter.grad for parameter in model.parameters()])
    torch.testing.assert_close(found[1], found[0])


class _Questions(TorchDispatchMode):
    """Counts how often a tensor is asked for a number: on a GPU each is a wait until all before it is done."""

    n = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.n += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", ATTENTION_KINDS)
def test_neither_a_pass_nor_a_picture_waits_for_the_device_on_the_way(kind):
    model = models.make(
        models.decoder_only(multi_head(D_MODEL, N_HEADS, **{"mask": CAUSAL, **ATTENTION_KINDS[kind]}))
    ).eval()
    trace = run_trace(model, Inputs(ids=IDS))
    with torch.inference_mode(), _Questions() as questions:
        model(torch.tensor([IDS]), tap=CollectingTap())
        trace.thumbnails("decoder.self", 5)
        trace.view("decoder.self", 1, 0, size=(3, 3))
    assert questions.n == 0


@pytest.mark.parametrize("kind", [*ATTENTION_KINDS, "disentangled"])
def test_pictures_are_exact_under_autocast_too(kind):
    options = ATTENTION_KINDS.get(kind, {"position": DisentangledPositions(span=8), "mask": MaskSpec()})
    layers = (models.layer(multi_head(D_MODEL, N_HEADS, **{"mask": CAUSAL, **options})),) * 2
    distances = DistanceTable(n_rows=16) if kind == "disentangled" else None
    config = models.decoder_only()
    assert config.decoder is not None
    model = models.make(replace(config, decoder=replace(config.decoder, layers=layers, distances=distances)))
    pictures = []
    for is_on in (False, True):
        trace = run_trace(model, Inputs(ids=IDS))
        with torch.autocast("cpu", torch.bfloat16, enabled=is_on):
            pictures.append((trace.attention("decoder.self", 1, 0), trace.thumbnails("decoder.self", 5)))
    for plain, under_autocast in zip(*pictures, strict=True):
        np.testing.assert_allclose(under_autocast, plain, atol=1e-6)


def test_a_pass_under_autocast_whose_queries_are_normed_in_float32_runs_as_any_other():
    norm = QueryKeyNorm(norm=NormSpec(kind="rms", bias=False))
    model = models.make(models.decoder_only(multi_head(D_MODEL, N_HEADS, mask=CAUSAL, query_key_norm=norm)))
    tap = CollectingTap()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        model.eval()(torch.tensor([IDS]), tap=tap)
    head = HeadScores(tap.heads["decoder.self", 1], 0)
    weights_NM = head.weights(slice(0, len(IDS)), slice(0, len(IDS))).numpy()
    np.testing.assert_allclose(weights_NM.sum(-1), 1, atol=1e-5)
    expected = run_trace(model, Inputs(ids=IDS))
    np.testing.assert_allclose(weights_NM, expected.attention("decoder.self", 1, 0), atol=0.1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_pictures_are_float32_whatever_the_default_of_new_tensors(dtype):
    expected, trace = (run_trace(models.make(models.decoder_only()), Inputs(ids=IDS)) for _ in range(2))
    torch.set_default_dtype(dtype)
    try:
        thumbnails = trace.thumbnails("decoder.self", 5)
        view = trace.view("decoder.self", 0, 1, size=(5, 5), reduce="mean")
        matrix = trace.attention("decoder.self", 0, 1)
        statistics = head_statistics(trace, "decoder.self")
        slopes_H = alibi_slopes(AlibiPositions(), 12)
    finally:
        torch.set_default_dtype(torch.float32)
    np.testing.assert_array_equal(thumbnails, expected.thumbnails("decoder.self", 5))
    np.testing.assert_array_equal(view.values, expected.view("decoder.self", 0, 1, size=(5, 5), reduce="mean").values)
    np.testing.assert_array_equal(matrix, expected.attention("decoder.self", 0, 1))
    np.testing.assert_array_equal(statistics.distance, head_statistics(expected, "decoder.self").distance)
    assert torch.equal(slopes_H, alibi_slopes(AlibiPositions(), 12))
