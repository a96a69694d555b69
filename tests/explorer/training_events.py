"""Made-up news of a training, to test what shows it."""

from __future__ import annotations

from typing import Any

import numpy as np

from core_model.training.events import ProbeAttention, ProbeSite, TrainEvent
from core_model.training.settings import TrainingSettings
from explorer.state.training import TrainingSnapshot
from explorer.workers.training_log import TrainingLog

SETTINGS = TrainingSettings(steps=400, warmup=100, schedule="linear", peak_learning_rate=1.0)


def probe(step: int = 1, n_layers: int = 2, n_heads: int = 3) -> ProbeAttention:
    """A causal decoder site of 4 tokens, and a cross site of 4 queries and 5 keys; rows sum to 1."""
    generator = np.random.default_rng(step)
    masked = np.triu(np.ones((4, 4), bool), 1)
    own = np.where(masked, 0, generator.random((n_layers, n_heads, 4, 4), np.float32))
    cross = generator.random((n_layers, n_heads, 4, 5), np.float32)
    return ProbeAttention(
        step=step,
        sites={
            "decoder.self": ProbeSite(
                weights=own / own.sum(-1, keepdims=True),
                masked=masked,
                query_texts=tuple("abcd"),
                key_texts=tuple("abcd"),
            ),
            "decoder.cross": ProbeSite(
                weights=cross / cross.sum(-1, keepdims=True),
                masked=np.zeros((4, 5), bool),
                query_texts=tuple("abcd"),
                key_texts=tuple("vwxyz"),
            ),
        },
    )


def event(step: int, **changes: Any) -> TrainEvent:
    facts = {
        "loss": 1.0 / step,
        "learning_rate": SETTINGS.learning_rate(step),
        "grad_norm": 2.0 * step,
        "loss_scale": None,
        "tokens_per_second": 1000.0 + step,
        "seconds": 0.5 * step,
    }
    return TrainEvent(step=step, n_steps=SETTINGS.steps, **(facts | changes))


def snapshot(n: int = 3, settings: TrainingSettings = SETTINGS, **last: Any) -> TrainingSnapshot:
    """What is known after n updates; accuracy and probe were measured at the last."""
    log = TrainingLog(settings)
    for step in range(1, n):
        log.append(event(step, **{name: value for name, value in last.items() if name == "loss_scale"}))
    log.append(event(n, **({"accuracy": 0.25, "probe": probe(n)} | last)))
    found = log.snapshot()
    assert found is not None
    return found
