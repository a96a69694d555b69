"""Feed-forward networks of every kind and mixtures of experts, against formulas and a loop over tokens.

Shape letters: B batch, N positions, C model width.
"""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from core_model.config import ExpertsSpec, FeedForwardSpec
from core_model.errors import ConfigError
from core_model.nn.feedforward import ACTIVATIONS, make_feed_forward
from tests.core_model.attention_cases import fill

FORMULAS = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),  # Hendrycks and Gimpel 2016
    "gelu_tanh": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_sigmoid": lambda x: x / (1 + math.exp(-1.702 * x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "relu_squared": lambda x: max(x, 0.0) ** 2,
    "identity": lambda x: x,
}


def tokens() -> torch.Tensor:
    return torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))


def made(spec: FeedForwardSpec, seed: int = 0) -> Any:
    feed_forward = make_feed_forward(spec, 6).eval()
    fill(feed_forward, seed)
    return feed_forward


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("x", [-3.0, -0.5, 0.0, 0.7, 4.0])
def test_an_activation_equals_its_formula(activation, x):
    y = ACTIVATIONS[activation](torch.tensor(x, dtype=torch.float64))
    assert y.item() == pytest.approx(FORMULAS[activation](x), abs=1e-9)


@pytest.mark.parametrize("output_bias", [None, True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("gated", [True, False])
def test_a_dense_network_equals_its_formula(gated, bias, output_bias):
    """Vaswani et al. 2017, eq. 2; gated: Shazeer 2020, eq. 5 and 6."""
    spec = FeedForwardSpec(d_hidden=9, activation="silu", gated=gated, bias=bias, output_bias=output_bias)
    feed_forward = made(spec)
    weights = feed_forward.state_dict()

    def linear(name: str, x: torch.Tensor) -> torch.Tensor:
        y = x @ weights[f"{name}.weight"].T
        return y + weights[f"{name}.bias"] if f"{name}.bias" in weights else y

    x_BNC = tokens()
    hidden = linear("input", x_BNC)
    if gated:
        gate = linear("gate", x_BNC)
        hidden = gate * torch.sigmoid(gate) * hidden
    else:
        hidden = hidden * torch.sigmoid(hidden)
    with torch.no_grad():
        torch.testing.assert_close(feed_forward(x_BNC), linear("output", hidden))
    assert ("input.bias" in weights) == bias
    assert ("output.bias" in weights) == (bias if output_bias is None else output_bias)


@pytest.mark.parametrize("d_shared", [0, 7])
@pytest.mark.parametrize("renormalize", [True, False])
@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("n_active", [1, 2, 4])
def test_a_mixture_equals_a_loop_over_tokens_and_experts(n_active, gated, renormalize, d_shared):
    experts = ExpertsSpec(
        n_experts=4, n_active=n_active, renormalize=renormalize, d_shared=d_shared, router_bias=d_shared > 0
    )
    spec = FeedForwardSpec(d_hidden=5, activation="silu", gated=gated, bias=not gated, experts=experts)
    mixture = made(spec)
    weights = mixture.state_dict()
    dense = replace(spec, experts=None)

    def network(part: str, expert: int | None, d_hidden: int) -> torch.nn.Module:
        """One expert as a dense network of its own."""
        one = make_feed_forward(replace(dense, d_hidden=d_hidden), 6)
        prefix = f"{part}."
        mine = {name.removeprefix(prefix): w for name, w in weights.items() if name.startswith(prefix)}
        one.load_state_dict({name: w if expert is None else w[expert] for name, w in mine.items()})
        return one

    x_BNC = tokens()
    expected_BNC = torch.zeros_like(x_BNC)
    with torch.no_grad():
        for token in torch.cartesian_prod(torch.arange(2), torch.arange(5)).tolist():
            x_C = x_BNC[tuple(token)]
            shares = mixture.router(x_C).softmax(-1).tolist()
            chosen = sorted(range(4), key=lambda expert: -shares[expert])[:n_active]
            total = sum(shares[expert] for expert in chosen) if renormalize else 1
            y_C = sum(shares[e] / total * network("experts", e, 5)(x_C) for e in chosen)
            if d_shared:
                y_C = y_C + torch.sigmoid(mixture.shared_gate(x_C)) * network("shared", None, d_shared)(x_C)
            expected_BNC[tuple(token)] = y_C
        torch.testing.assert_close(mixture(x_BNC), expected_BNC, atol=1e-5, rtol=1e-5)


def test_a_mixture_passes_gradients_to_router_and_chosen_experts():
    mixture = made(FeedForwardSpec(d_hidden=5, experts=ExpertsSpec(n_experts=3, n_active=2), activation="gelu"))
    mixture(tokens()).square().sum().backward()
    assert mixture.router.weight.grad.abs().sum() > 0
    assert (mixture.experts.input.weight.grad.abs().sum((1, 2)) > 0).all()


def test_dropout_of_hidden_activations_is_applied_in_training_only():
    feed_forward = made(FeedForwardSpec(d_hidden=9, dropout=0.5))
    with torch.no_grad():
        assert torch.equal(feed_forward(tokens()), feed_forward(tokens()))
        assert not torch.equal(feed_forward.train()(tokens()), feed_forward(tokens()))


def test_a_bounded_gate_with_an_offset_equals_its_formula():
    """(1 + clamp(u, -c, c)) g sigmoid(1.702 g) of g = min(gate(x), c), u = input(x) (gpt-oss, its reference code)."""
    spec = FeedForwardSpec(d_hidden=9, activation="gelu_sigmoid", gated=True, clip=0.3, unit_offset=True)
    feed_forward = made(spec)
    x_BNC = tokens()
    with torch.no_grad():
        gate, linear = feed_forward.gate(x_BNC).clamp(max=0.3), feed_forward.input(x_BNC).clamp(-0.3, 0.3)
        assert (gate < -0.3).any() and (gate == 0.3).any() and (linear == -0.3).any() and (linear == 0.3).any()
        expected_BNC = feed_forward.output((1 + linear) * gate * torch.sigmoid(1.702 * gate))
        torch.testing.assert_close(feed_forward(x_BNC), expected_BNC)


@pytest.mark.parametrize("changes", [{"clip": 1.0}, {"unit_offset": True}, {"gated": True, "clip": 0.0}])
def test_bounds_and_offsets_of_no_gate_are_refused(changes):
    with pytest.raises(ConfigError, match="clip is"):
        FeedForwardSpec(d_hidden=9, **changes)
