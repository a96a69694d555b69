"""What answers weigh, beside what Python says that they take."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from core_model.results import HeatmapView
from core_model.tokenize.encoding import Encoding
from explorer.state.answers import MatrixAnswer
from explorer.state.app_state import Tokens
from explorer.workers.weight import weight_of
from tests.explorer.states import INPUTS, SOURCE, encoding


def long_text(n: int) -> Encoding:
    return Encoding(
        ids=tuple(range(1000, 1000 + n)),
        texts=tuple(f" word{index}" for index in range(n)),
        offsets=tuple((1000 + index, 2000 + index) for index in range(n)),
        type_ids=(0,) * n,
        special=(False,) * n,
        sequence=(0,) * n,
    )


def test_tokens_weigh_what_they_take() -> None:
    tracemalloc.start()
    try:
        tokens = Tokens(source=SOURCE, inputs=INPUTS, stacks={"decoder": long_text(50_000)})
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert weight_of(tokens) == pytest.approx(taken, rel=0.2)


def test_what_stands_twice_in_an_answer_counts_once() -> None:
    values = np.zeros((100, 100), np.float32)
    tokens = long_text(1000)
    view = HeatmapView(
        site="decoder.self",
        layer=0,
        head=0,
        values=values,
        masked=np.zeros((100, 100), bool),
        rows=(0, 100),
        cols=(0, 100),
        cells=(1, 1),
        reduce="max",
    )
    square = MatrixAnswer(view=view, row_peaks=values[0], queries=tokens, keys=tokens)
    assert weight_of(square) == pytest.approx(5 * 100 * 100 + weight_of(tokens), rel=0.05)


def test_a_picture_as_bytes_weighs_its_bytes() -> None:
    assert weight_of((bytes(10_000), encoding("a"))) == pytest.approx(10_000, rel=0.2)
