"""The feed-forward sublayer, dense or a mixture of experts.

Shape letters: B batch, N positions, C model width, F feed-forward width, T tokens (B*N), E experts, A active experts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn
from torch.nn import functional

from core_model.config import Activation, FeedForwardSpec
from core_model.nn.linear import Linear, mapped
from core_model.nn.product import product
from core_model.nn.tap import Tap


def _gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x, approximate="tanh")


def _gelu_sigmoid(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(1.702 * x)


def _relu_squared(x: torch.Tensor) -> torch.Tensor:
    return functional.relu(x).square()


def _identity(x: torch.Tensor) -> torch.Tensor:
    return x


ACTIVATIONS: dict[Activation, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": _gelu_tanh,
    "gelu_sigmoid": _gelu_sigmoid,
    "silu": functional.silu,
    "tanh": torch.tanh,
    "relu_squared": _relu_squared,
    "identity": _identity,
}


def activated(spec: FeedForwardSpec, gate: torch.Tensor) -> torch.Tensor:
    """activation(gate), of bounded values where the spec says so."""
    return ACTIVATIONS[spec.activation](gate if spec.clip is None else gate.clamp(max=spec.clip))


def gated(spec: FeedForwardSpec, gate: torch.Tensor, linear: torch.Tensor) -> torch.Tensor:
    """An `activated` gate, overwritten by its product with a linear map (Shazeer 2020, eq. 5), bounded likewise."""
    if spec.clip is not None:
        linear = linear.clamp(-spec.clip, spec.clip)
    factor = linear + 1 if spec.unit_offset else linear
    # What trains reads the gate again on its way back.
    return gate * factor if torch.is_grad_enabled() else gate.mul_(factor)


class FeedForward(nn.Module):
    """output(activation(input(x))), or output(activation(gate(x)) * input(x)) when gated (Shazeer 2020)."""

    def __init__(self, spec: FeedForwardSpec, d_model: int) -> None:
        super().__init__()
        self.spec = spec
        self.input = Linear(d_model, spec.d_hidden, bias=spec.bias)
        self.gate = Linear(d_model, spec.d_hidden, bias=spec.bias) if spec.gated else None
        self.output = Linear(spec.d_hidden, d_model, bias=spec.has_output_bias)

    def forward(self, x_BNC: torch.Tensor, *, prefix: str = "", tap: Tap | None = None) -> torch.Tensor:
        if self.gate is None:
            hidden_BNF = ACTIVATIONS[self.spec.activation](mapped(self.input, x_BNC, tap))
        else:
            # The gate's activation comes while its values are still in the processor's cache.
            gate_BNF = activated(self.spec, mapped(self.gate, x_BNC, tap))
            hidden_BNF = gated(self.spec, gate_BNF, mapped(self.input, x_BNC, tap))
        if tap is not None:
            hidden_BNF = tap.activation(f"{prefix}feed_forward_hidden", hidden_BNF)
        if self.training and self.spec.dropout:
            hidden_BNF = functional.dropout(hidden_BNF, self.spec.dropout)
        return mapped(self.output, hidden_BNF, tap)


class Experts(nn.Module):
    """Several feed-forward networks, their weights stacked [E, out, in]."""

    def __init__(self, spec: FeedForwardSpec, d_model: int, n_experts: int) -> None:
        super().__init__()
        self.spec = spec
        self.input = StackedLinear(n_experts, d_model, spec.d_hidden, bias=spec.bias)
        self.gate = StackedLinear(n_experts, d_model, spec.d_hidden, bias=spec.bias) if spec.gated else None
        self.output = StackedLinear(n_experts, spec.d_hidden, d_model, bias=spec.has_output_bias)

    def forward(self, x_TC: torch.Tensor, expert: int) -> torch.Tensor:
        if self.gate is None:
            return self.output(ACTIVATIONS[self.spec.activation](self.input(x_TC, expert)), expert)
        gate_TF = activated(self.spec, self.gate(x_TC, expert))
        return self.output(gated(self.spec, gate_TF, self.input(x_TC, expert)), expert)


class StackedLinear(nn.Module):
    """One linear map an expert."""

    def __init__(self, n_experts: int, d_input: int, d_output: int, *, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_experts, d_output, d_input))
        self.bias = nn.Parameter(torch.zeros(n_experts, d_output)) if bias else None
        nn.init.normal_(self.weight, std=d_input**-0.5)

    def forward(self, x_TC: torch.Tensor, expert: int) -> torch.Tensor:
        return product(x_TC, self.weight[expert], None if self.bias is None else self.bias[expert])


class MixtureOfExperts(nn.Module):
    """Each token through its best-scored experts, weighted by the router's softmax (Shazeer et al. 2017; Mixtral)."""

    def __init__(self, spec: FeedForwardSpec, d_model: int) -> None:
        super().__init__()
        assert spec.experts is not None
        self.spec, self.routing = spec, spec.experts
        self.router = Linear(d_model, spec.experts.n_experts, bias=spec.experts.router_bias)
        self.experts = Experts(spec, d_model, spec.experts.n_experts)
        self.shared = self.shared_gate = None
        if spec.experts.d_shared:
            shared = replace(spec, d_hidden=spec.experts.d_shared, experts=None)
            self.shared = FeedForward(shared, d_model)
            self.shared_gate = Linear(d_model, 1, bias=False)

    def forward(self, x_BNC: torch.Tensor, *, prefix: str = "", tap: Tap | None = None) -> torch.Tensor:
        x_TC = x_BNC.flatten(0, 1)
        share_TE = self.router(x_TC).float().softmax(-1)
        share_TA, expert_TA = share_TE.topk(self.routing.n_active, dim=-1)
        if self.routing.renormalize:
            share_TA = share_TA / share_TA.sum(-1, keepdim=True)
        total_TC = torch.zeros_like(x_TC)
        for expert in expert_TA.unique().tolist():
            token, slot = (expert_TA == expert).nonzero(as_tuple=True)
            share = share_TA[token, slot, None].to(x_TC.dtype)
            total_TC.index_add_(0, token, self.experts(x_TC[token], expert) * share)
            if tap is not None:
                tap.pause()
        if self.shared is not None and self.shared_gate is not None:
            total_TC = total_TC + torch.sigmoid(self.shared_gate(x_TC)) * self.shared(x_TC)
        return total_TC.view_as(x_BNC)


class NoFeedForward(nn.Module):
    """Adds nothing: of a layer that is attention alone."""

    def forward(self, x_BNC: torch.Tensor, *, prefix: str = "", tap: Tap | None = None) -> torch.Tensor:
        return torch.zeros_like(x_BNC)


def make_feed_forward(spec: FeedForwardSpec, d_model: int) -> FeedForward | MixtureOfExperts | NoFeedForward:
    """The feed-forward sublayer a spec describes."""
    if not spec.d_hidden:
        return NoFeedForward()
    return MixtureOfExperts(spec, d_model) if spec.experts else FeedForward(spec, d_model)
