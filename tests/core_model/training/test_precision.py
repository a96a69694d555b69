import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from core_model.config import multi_head
from core_model.errors import ConfigError
from core_model.nn.attend import attend
from core_model.nn.scores import HeadInputs
from core_model.training.precision import MixedPrecision, NotFiniteError, precisions

CPU = torch.device("cpu")


def linear_and_optimizer():
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    return model, torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)


def weights(model):
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def test_a_cpu_trains_in_all_three_precisions():
    assert precisions(CPU) == ("fp32", "bf16", "fp16")


def test_a_precision_the_device_lacks_is_refused_naming_what_it_has():
    with pytest.raises(ConfigError, match=r"precision is 'bf16': mps can train in fp32"):
        MixedPrecision("bf16", torch.device("mps"))


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_autocast_computes_in_the_precision_and_weights_stay_float32(name, dtype):
    model, _ = linear_and_optimizer()
    with MixedPrecision(name, CPU).autocast():
        assert model(torch.ones(2, 4)).dtype == dtype
    assert model.weight.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("padding", [None, torch.tensor([[True, True]])])
def test_softmax_tells_scores_apart_that_half_precision_would_round_together(dtype, padding):
    # Scores 2000 and 2000.5: both numbers are 2000 in float16 and bfloat16, and the weights would be a half each.
    spec = replace(multi_head(64, 1), scale=1.0)
    key = torch.full((1, 1, 2, 64), 62.5 / 64)
    key[0, 0, 1, 0] += 1 / 64
    heads = HeadInputs(
        spec=spec, q_BHND=torch.full((1, 1, 1, 64), 32.0, dtype=dtype), k_BKMD=key.to(dtype), key_mask_BM=padding
    )
    out, _ = attend(heads, torch.eye(2, 64, dtype=dtype)[None, None])
    expected = [1 / (1 + math.exp(0.5)), 1 / (1 + math.exp(-0.5))]
    assert out[0, 0, 0, :2].tolist() == pytest.approx(expected, abs=3e-3)


def test_loss_scaling_leaves_gradient_norm_and_update_as_without_it():
    updates = {}
    for name in ("fp32", "fp16"):
        model, optimizer = linear_and_optimizer()
        update = MixedPrecision(name, CPU).update(model(torch.ones(2, 4)).square().mean(), optimizer, model, clip=1.0)
        updates[name] = (update.grad_norm, weights(model))
    assert updates["fp16"][0] == pytest.approx(updates["fp32"][0], rel=1e-6)
    for name, weight in updates["fp32"][1].items():
        torch.testing.assert_close(updates["fp16"][1][name], weight)


def test_gradients_are_clipped_to_the_norm_and_reported_before_it():
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = model.weight.item()
    update = MixedPrecision("fp32", CPU).update(model(torch.full((1, 1), 30.0)).sum(), optimizer, model, clip=1.0)
    assert update.grad_norm == pytest.approx(30.0)
    assert model.weight.item() == pytest.approx(before - 1.0)


def test_overflow_at_the_loss_scale_skips_the_update_and_halves_the_scale():
    model, optimizer = linear_and_optimizer()
    precision, before = MixedPrecision("fp16", CPU), weights(model)
    loss = model(torch.full((1, 4), 3e34)).mean()
    update = precision.update(loss, optimizer, model, clip=1.0)
    assert update.grad_norm == float("inf") and update.loss_scale == 2.0**16
    for name, weight in before.items():
        torch.testing.assert_close(weights(model)[name], weight)
    assert precision.update(model(torch.ones(1, 4)).mean(), optimizer, model, clip=1.0).loss_scale == 2.0**15


class _NotANumber(torch.autograd.Function):
    """Passes values through; its gradient is NaN."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, *grad_outputs):
        return torch.full_like(grad_outputs[0], torch.nan)


@pytest.mark.parametrize(("name", "n_skipped"), [("fp32", 0), ("bf16", 0), ("fp16", 27)])
def test_gradients_that_no_scale_mends_stop_before_any_weight_changes(name, n_skipped):
    model, optimizer = linear_and_optimizer()
    precision, before = MixedPrecision(name, CPU), weights(model)
    for _ in range(n_skipped):
        precision.update(_NotANumber.apply(model(torch.ones(1, 4))).mean(), optimizer, model, clip=1.0)
    with pytest.raises(NotFiniteError, match="gradient of weight is nan"):
        precision.update(_NotANumber.apply(model(torch.ones(1, 4))).mean(), optimizer, model, clip=1.0)
    for parameter_name, weight in before.items():
        torch.testing.assert_close(weights(model)[parameter_name], weight)
