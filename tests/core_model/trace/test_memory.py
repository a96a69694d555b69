"""A long input is never turned into its matrix: the largest tensor made is counted while every view is asked for."""

import weakref

import numpy as np
import pytest
import torch

from core_model.config import AlibiPositions, MaskSpec, multi_head
from core_model.trace import Inputs, run_trace
from tests.core_model import models
from tests.core_model.counting import Watch
from tests.core_model.models import CAUSAL, D_MODEL, N_HEADS, VOCAB

N_TOKENS = 6000
BLOCK = 1 << 23
"""Elements: a third of the matrix of 6000 tokens, at any length."""

KINDS = {
    "causal": {},
    "full": {"mask": MaskSpec()},
    "window": {"mask": MaskSpec(causal=True, window=100)},
    "capped": {"soft_cap": 5.0},
    "sinks": {"sinks": True},
    "alibi": {"position": AlibiPositions()},
    "relu": {"normalizer": "relu"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_neither_pass_nor_views_hold_a_matrix(kind):
    attention = multi_head(D_MODEL, N_HEADS, **{"mask": CAUSAL, **KINDS[kind]})
    model = models.make(models.decoder_only(attention, n_layers=1))
    ids = np.random.default_rng(0).integers(0, VOCAB, N_TOKENS)
    with Watch() as watch:
        trace = run_trace(model, Inputs(ids=ids))
        trace.view("decoder.self", 0, 0, size=(512, 512))
        trace.view("decoder.self", 0, 1, size=(512, 512), reduce="mean")
        trace.view("decoder.self", 0, 0, rows=(5000, 5500), cols=(4800, 5500))
        trace.row("decoder.self", 0, 0, N_TOKENS - 1)
        trace.cell("decoder.self", 0, 0, N_TOKENS - 1, 17)
    assert N_TOKENS**2 > 4 * BLOCK
    assert watch.largest <= BLOCK


def test_what_makes_heads_quick_is_let_go_when_many_were_asked_for(monkeypatch):
    trace = run_trace(models.make(models.decoder_only(n_layers=1)), Inputs(ids=[1] * 100))
    monkeypatch.setattr("core_model.trace.trace._KEPT_BYTES", 2 * trace.head("decoder.self", 0, 0).n_bytes)
    first, second, third = (weakref.ref(trace.head("decoder.self", 0, head)) for head in range(3))
    assert first() is None
    assert second() is trace.head("decoder.self", 0, 1)
    assert third() is trace.head("decoder.self", 0, 2)


def test_the_whole_matrix_is_made_when_it_is_asked_for():
    """So the count above would notice one."""
    model = models.make(models.decoder_only(n_layers=1))
    trace = run_trace(model, Inputs(ids=[1] * 300))
    with Watch() as watch, torch.inference_mode():
        trace.attention("decoder.self", 0, 0)
    assert watch.largest >= 300**2
