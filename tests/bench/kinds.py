"""What attention of every kind costs beside the plain one: the pass that is remembered, and the pictures of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch

from core_model.config import AlibiPositions, AttentionSpec, BucketedPositions, MaskSpec, multi_head
from core_model.nn.attend import attend
from core_model.nn.positions import alibi_slopes
from core_model.nn.scores import HeadInputs
from core_model.trace.scores import HeadScores
from core_model.trace.views import thumbnails
from tests.bench import models
from tests.bench.measure import Line, in_turn

_ALIBI = AlibiPositions()
_KINDS = {
    "half precision": {},
    "sinks": {"sinks": True},
    "ReLU": {"normalizer": "relu"},
    "soft-capped": {"soft_cap": 50.0},
    "ALiBi": {"position": _ALIBI},
    "T5's buckets": {"position": BucketedPositions(bidirectional=False)},
}


def every_kind(device: torch.device) -> list[Line]:
    """Causal attention of 12 heads at n=4096: keys and queries remembered with what a picture needs, then all heads
    drawn for the first time."""
    found = []
    plain, v = _heads("plain", device)
    for kind in _KINDS:
        heads, own_v = _heads(kind, device)
        passes = in_turn(partial(_remembered, heads, own_v), partial(_remembered, plain, v), n=3)
        pictures = in_turn(_drawing(heads, own_v), _drawing(plain, v), n=3)
        found += _lines(kind, {"attention": passes.ratio, "thumbnails": pictures.ratio})
    return found


def _lines(kind: str, ratios: dict[str, float]) -> Iterator[Line]:
    for work, ratio in ratios.items():
        yield Line(work=f"{work}, 12 heads, {kind}, n=4096", reference="plain", found=f"{ratio:.2f}x", must_be="")


def _heads(kind: str, device: torch.device) -> tuple[HeadInputs, torch.Tensor]:
    causal = multi_head(models.D_MODEL, models.N_HEADS, mask=MaskSpec(causal=True))
    spec = replace(causal, **_KINDS.get(kind, {}))
    dtype = torch.bfloat16 if kind == "half precision" else torch.float32
    q, k, v = torch.randn(3, 1, models.N_HEADS, 4096, models.HEAD_SIZE, device=device, dtype=dtype)
    sinks_H = torch.zeros(models.N_HEADS, device=device) if spec.sinks else None
    return HeadInputs(spec=spec, q_BHND=q, k_BKMD=k, bias_weights=_bias_weights(spec, device), sinks_H=sinks_H), v


def _bias_weights(spec: AttentionSpec, device: torch.device) -> torch.Tensor | None:
    if isinstance(spec.position, BucketedPositions):
        return torch.randn(spec.position.n_buckets, spec.n_heads, device=device)
    return alibi_slopes(_ALIBI, spec.n_heads).to(device) if spec.position == _ALIBI else None


def _remembered(heads: HeadInputs, v: torch.Tensor) -> HeadInputs:
    return replace(heads, logsumexp_BHN=attend(heads, v, want_logsumexp=True)[1])


def _drawing(heads: HeadInputs, v: torch.Tensor) -> partial[torch.Tensor]:
    remembered = _remembered(heads, v)
    return partial(_drawn_anew, remembered)


def _drawn_anew(heads: HeadInputs) -> torch.Tensor:
    return thumbnails(heads, [HeadScores(heads, head) for head in range(models.N_HEADS)], 64)
