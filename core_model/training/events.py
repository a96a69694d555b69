"""What a training tells while it runs, as frozen records that may cross threads. No torch here.

Shape letters: L layers, H heads, N queries, M keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.results import BoolArray, FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeSite:
    """The watched example's attention at one site: weights [L, H, N, M], exact, and the texts of both axes.

    `masked` [N, M] is True where the site's mask hides the key from the query, in every layer and head.
    """

    weights: FloatArray
    masked: BoolArray
    query_texts: tuple[str, ...]
    key_texts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeAttention:
    """The watched example's attention after `step` updates, by site (`decoder.cross`)."""

    step: int
    sites: Mapping[str, ProbeSite]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainEvent:
    """One update. Accuracy and probe are measured after it, every `watch_every` updates; else they are None.

    Accuracy is measured wherever the run is saved, too.

    `loss` is the mean cross-entropy of a target in nat, before the update. `grad_norm` is that before clipping; it is
    infinite in an update that was skipped because float16 gradients overflowed at this `loss_scale`. `accuracy` is
    the share of held-out targets predicted right, each given the right ones before it. `tokens_per_second` counts no
    padding and, as `seconds` since the start, no pauses and no measurements.
    """

    step: int
    n_steps: int
    loss: float
    learning_rate: float
    grad_norm: float
    loss_scale: float | None
    tokens_per_second: float
    seconds: float
    accuracy: float | None = None
    probe: ProbeAttention | None = None
