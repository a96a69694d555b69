"""One layer: sublayers joined to the residual stream.

Shape letters: B batch, N positions, M encoder positions, C model width.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from core_model.config import LayerSpec, ResidualSpec
from core_model.nn.attention import Attention
from core_model.nn.feedforward import make_feed_forward
from core_model.nn.forward_pass import Pass
from core_model.nn.norms import make_norm
from core_model.nn.tap import Tap


class Residual(nn.Module):
    """The norms and the addition around a sublayer f: total(x + scale * after(f(before(x)))); see ResidualSpec."""

    def __init__(self, spec: ResidualSpec, d_model: int) -> None:
        super().__init__()
        self.spec = spec
        self.before = make_norm(spec.before, d_model) if spec.before else None
        self.after = make_norm(spec.after, d_model) if spec.after else None
        self.total = make_norm(spec.total, d_model) if spec.total else None
        self.learned_scale = nn.Parameter(torch.ones(d_model)) if spec.learned_scale else None

    def enter(self, x_BNC: torch.Tensor) -> torch.Tensor:
        """What the sublayer reads."""
        return x_BNC if self.before is None else self.before(x_BNC)

    def branch(self, f_BNC: torch.Tensor) -> torch.Tensor:
        """What the sublayer adds: normed, dropped out in training, scaled."""
        if self.after is not None:
            f_BNC = self.after(f_BNC)
        if self.learned_scale is not None:
            f_BNC = f_BNC * self.learned_scale
        if self.training and self.spec.dropout:
            f_BNC = functional.dropout(f_BNC, self.spec.dropout)
        return f_BNC if self.spec.scale == 1 else f_BNC * self.spec.scale

    def leave(self, x_BNC: torch.Tensor, added_BNC: torch.Tensor) -> torch.Tensor:
        """The residual stream once what the sublayer adds is added, or put in its place."""
        x_BNC = x_BNC + added_BNC if self.spec.skip else added_BNC
        return x_BNC if self.total is None else self.total(x_BNC)


class Layer(nn.Module):
    """Self-attention, cross-attention if there is one, feed-forward; or attention beside feed-forward (parallel)."""

    def __init__(self, spec: LayerSpec, d_model: int, d_memory: int | None) -> None:
        super().__init__()
        self.spec = spec
        self.attention = Attention(spec.attention, d_model)
        self.attention_residual = Residual(spec.attention_residual, d_model)
        self.cross_attention = self.cross_residual = None
        if spec.cross_attention is not None:
            self.cross_attention = Attention(spec.cross_attention, d_model, d_memory)
            self.cross_residual = Residual(spec.cross_residual, d_model)
        self.feed_forward = make_feed_forward(spec.feed_forward, d_model)
        self.feed_forward_residual = Residual(spec.feed_forward_residual, d_model)

    def forward(
        self, x_BNC: torch.Tensor, shared: Pass, *, stack: str, layer: int, bias_table: torch.Tensor | None = None
    ) -> torch.Tensor:
        prefix, tap = f"{stack}.{layer}.", shared.tap
        x_BNC = _told(tap, f"{prefix}residual_before", x_BNC)
        entered_BNC = self.attention_residual.enter(x_BNC)
        attended_BNC = self.attention(
            entered_BNC,
            key_mask_BM=shared.key_mask_BN,
            bias_table=bias_table,
            shared=shared,
            site=f"{stack}.self",
            layer=layer,
        )
        added_BNC = _told(tap, f"{prefix}attention_output", self.attention_residual.branch(attended_BNC))
        if self.spec.parallel:
            read_BNC = entered_BNC if self.spec.shared_norm else self.feed_forward_residual.enter(x_BNC)
            x_BNC = x_BNC + added_BNC
        else:
            x_BNC = self.attention_residual.leave(x_BNC, added_BNC)
            x_BNC = self._cross(x_BNC, shared, stack, layer)
            read_BNC = self.feed_forward_residual.enter(x_BNC)
        fed_BNC = self.feed_forward_residual.branch(self.feed_forward(read_BNC, prefix=prefix, tap=tap))
        x_BNC = self.feed_forward_residual.leave(x_BNC, _told(tap, f"{prefix}feed_forward_output", fed_BNC))
        return _told(tap, f"{prefix}residual_after", x_BNC)

    def _cross(self, x_BNC: torch.Tensor, shared: Pass, stack: str, layer: int) -> torch.Tensor:
        """Attention over the encoder's output; x unchanged in a stack that reads no encoder."""
        if self.cross_attention is None or self.cross_residual is None:
            return x_BNC
        attended_BNC = self.cross_attention(
            self.cross_residual.enter(x_BNC),
            shared.memory_BMC,
            key_mask_BM=shared.memory_mask_BM,
            shared=shared,
            site=f"{stack}.cross",
            layer=layer,
        )
        added_BNC = _told(shared.tap, f"{stack}.{layer}.cross_output", self.cross_residual.branch(attended_BNC))
        return self.cross_residual.leave(x_BNC, added_BNC)


def _told(tap: Tap | None, site: str, x: torch.Tensor) -> torch.Tensor:
    return x if tap is None else tap.activation(site, x)
