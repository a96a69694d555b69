"""Random small attentions of every kind, each with an input: what property tests draw.

Shape letters: B batch, N tokens, C model width.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from hypothesis import strategies as st

from core_model.config import (
    AlibiPositions,
    AttentionSpec,
    BucketedPositions,
    DisentangledPositions,
    GridPositions,
    MaskSpec,
    NormSpec,
    QueryKeyNorm,
    RelativePositions,
    RotaryPositions,
)
from core_model.nn.attention import Attention
from core_model.nn.cache import KeyValueCache
from core_model.nn.forward_pass import Pass
from core_model.nn.scores import HeadInputs
from core_model.trace.tap import CollectingTap
from core_model.trace.trace import Trace
from tests.core_model.dense import Dense, dense_attention

SITE = "decoder.self"
D_MODEL = 10

masks = st.builds(
    MaskSpec,
    causal=st.booleans(),
    window=st.none() | st.integers(1, 8),
    n_global=st.just(0) | st.integers(1, 3),
    n_prefix=st.just(0) | st.integers(1, 3),
)

norms = st.sampled_from(
    [
        NormSpec(kind="rms", eps=1e-6, bias=False),
        NormSpec(kind="rms", eps=1e-6, bias=False, unit_offset=True),
        NormSpec(kind="layer", eps=1e-5),
        NormSpec(kind="layer", eps=1e-5, bias=False),
        NormSpec(kind="layer", eps=1e-5, unit_offset=True),
        NormSpec(kind="layer", eps=1e-5, weight=False),
    ]
)


@dataclass(frozen=True, kw_only=True)
class AttentionCase:
    """An attention with weights, tokens of which the first `first_query` were seen before, and padding (0)."""

    spec: AttentionSpec
    seed: int
    n_batch: int
    n_tokens: int
    first_query: int
    padding: tuple[tuple[bool, ...], ...] | None

    @cached_property
    def attention(self) -> Attention:
        """The module, with random weights."""
        attention = Attention(self.spec, D_MODEL).eval()
        fill(attention, self.seed)
        return attention

    @cached_property
    def x(self) -> torch.Tensor:
        """The input [B, N, C]."""
        generator = torch.Generator().manual_seed(self.seed)
        return torch.randn(self.n_batch, self.n_tokens, D_MODEL, generator=generator)

    @property
    def key_mask(self) -> torch.Tensor | None:
        """True [B, N] at real tokens; None without padding."""
        return None if self.padding is None else torch.tensor(self.padding)

    @cached_property
    def distances(self) -> torch.Tensor | None:
        """The stack's vectors of distances [R, C], where attention reads them."""
        position = self.spec.position
        if not isinstance(position, DisentangledPositions):
            return None
        return torch.randn(2 * position.span, D_MODEL, generator=torch.Generator().manual_seed(self.seed + 1))

    @cached_property
    def ran(self) -> tuple[torch.Tensor, HeadInputs]:
        """The output of the tokens from `first_query` on, and what a tap saw of them."""
        tap, cache = CollectingTap(), KeyValueCache()
        mask, start = self.key_mask, self.first_query
        with torch.inference_mode():
            if start:
                earlier = None if mask is None else mask[:, :start]
                unwatched = Pass(distance_RC=self.distances, cache=cache)
                self.attention(self.x[:, :start], key_mask_BM=earlier, shared=unwatched, site=SITE)
            watched = Pass(distance_RC=self.distances, cache=cache, tap=tap)
            out_BNC = self.attention(self.x[:, start:], key_mask_BM=mask, shared=watched, site=SITE)
        return out_BNC, tap.heads[SITE, 0]

    @cached_property
    def dense(self) -> Dense:
        """The same by definition."""
        return dense_attention(
            self.attention,
            self.x,
            first_query=self.first_query,
            key_mask_BM=self.key_mask,
            distance_RC=self.distances,
        )

    def trace(self) -> Trace:
        """A trace of the first example."""
        return Trace({(SITE, 0): self.ran[1]}, {}, hidden=np.zeros((1, 1), np.float32), logits=None)


def fill(module: torch.nn.Module, seed: int, gain: float = 1.5) -> None:
    """Random weights where any are trained, large enough that attention is far from flat."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                continue
            noise = torch.randn(parameter.shape, generator=generator)
            is_gain = name.endswith("weight") and ("norm" in name or parameter.dim() == 1)
            if is_gain:
                parameter.add_(0.3 * noise)
            elif parameter.dim() < 2 or name.endswith("position_bias.weight"):
                parameter.copy_(0.5 * noise)
            else:
                parameter.copy_(gain * parameter.shape[-1] ** -0.5 * noise)


@st.composite
def relative_positions(draw: st.DrawFn, head_size: int) -> RelativePositions | None:
    """A relative position of any kind that fits the head."""
    kind = draw(st.sampled_from(["none", "rotary", "alibi", "buckets", "grid", "disentangled"]))
    if kind == "rotary" and head_size >= 2:
        return RotaryPositions(
            n_rotated=2 * draw(st.integers(1, head_size // 2)),
            base=draw(st.sampled_from([10000.0, 100.0])),
            layout=draw(st.sampled_from(["halves", "interleaved"])),
        )
    if kind == "alibi":
        return AlibiPositions(scale=draw(st.sampled_from([1.0, 0.25])))
    if kind == "buckets":
        return BucketedPositions(
            n_buckets=2 * draw(st.integers(2, 8)),
            max_distance=draw(st.integers(9, 40)),
            bidirectional=draw(st.booleans()),
        )
    if kind == "grid":
        return GridPositions(grid=draw(st.sampled_from([(4, 5), (10, 2), (1, 19)])))
    if kind == "disentangled":
        return DisentangledPositions(
            span=draw(st.integers(2, 8)),
            max_distance=draw(st.none() | st.integers(6, 40)),
            content_to_position=draw(st.booleans()),
            position_to_content=draw(st.booleans()),
            shared_maps=draw(st.booleans()),
            key_bias=draw(st.booleans()),
        )
    return None


@st.composite
def attention_specs(draw: st.DrawFn) -> AttentionSpec:
    """An attention of any kind; its head size has nothing to do with the model's width."""
    n_key_heads = draw(st.integers(1, 3))
    head_size = draw(st.integers(1, 8))
    normalizer: Literal["softmax", "relu"] = "relu" if draw(st.integers(0, 3)) == 3 else "softmax"
    position = draw(relative_positions(head_size))
    return AttentionSpec(
        n_heads=n_key_heads * (1 if isinstance(position, DisentangledPositions) else draw(st.integers(1, 3))),
        n_key_heads=n_key_heads,
        head_size=head_size,
        scale=draw(st.sampled_from([head_size**-0.5, 1.0, 0.2])),
        mask=draw(masks),
        position=position,
        query_bias=draw(st.booleans()),
        key_bias=draw(st.booleans()),
        value_bias=draw(st.booleans()),
        output_bias=draw(st.booleans()),
        query_key_norm=draw(
            st.none() | st.builds(QueryKeyNorm, norm=norms, over=st.sampled_from(["head", "heads", "width"]))
        ),
        soft_cap=draw(st.none() | st.sampled_from([2.0, 20.0])),
        clip=draw(st.none() | st.just(1.0)),
        sinks=normalizer == "softmax" and draw(st.booleans()),
        normalizer=normalizer,
    )


@st.composite
def attention_cases(draw: st.DrawFn, max_tokens: int = 20) -> AttentionCase:
    """An attention of any kind on a random input, some of it seen before, some of it padding."""
    n_batch, n_tokens = draw(st.integers(1, 2)), draw(st.integers(1, max_tokens))
    flags = st.tuples(*[st.booleans()] * n_tokens)
    return AttentionCase(
        spec=draw(attention_specs()),
        seed=draw(st.integers(0, 1000)),
        n_batch=n_batch,
        n_tokens=n_tokens,
        first_query=draw(st.just(0) | st.integers(0, n_tokens - 1)),
        padding=draw(st.none() | st.tuples(*[flags] * n_batch)),
    )
