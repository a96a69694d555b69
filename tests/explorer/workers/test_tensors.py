"""What the engine answers about stored tensors and heads' weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from core_model.cancel import CancelToken
from core_model.checkpoint import open_checkpoint
from core_model.errors import Cancelled, CheckpointError, TraceError
from explorer.state.queries import Query, R
from explorer.state.source import Source
from explorer.state.tensor_queries import SpectrumQuery, TensorListQuery, TensorPartQuery, TensorQuery
from explorer.state.tensors import HeadCut
from explorer.workers.answers import ANSWERS
from explorer.workers.engine import Engine
from tests.explorer.models import N_HEADS, save_encoder_decoder

NAME = "decoder.layers.0.cross_attention.output.weight"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source(path=save_encoder_decoder(tmp_path_factory.mktemp("models") / "translator"))


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(ANSWERS)
    yield engine
    engine.close()


def ask(engine: Engine, query: Query[R]) -> R:
    return engine.answer(query, CancelToken(), lambda fraction: None)


def cut(head: int) -> HeadCut:
    return HeadCut(site="decoder.cross", layer=0, head=head, part="output")


def test_all_stored_tensors_are_listed(engine: Engine, source: Source):
    with open_checkpoint(source.path) as checkpoint:
        assert ask(engine, TensorListQuery(source=source)).tensors == tuple(checkpoint.tensors.values())


def test_a_head_is_cut_out_of_what_is_stored(engine: Engine, source: Source):
    whole = ask(engine, TensorQuery(source=source, subject=NAME, pooling="extreme"))
    parts = [ask(engine, TensorQuery(source=source, subject=cut(head), pooling="extreme")) for head in range(N_HEADS)]
    assert whole.view is not None and whole.info is not None and parts[0].info is None
    np.testing.assert_array_equal(np.hstack([part.view.values for part in parts if part.view]), whole.view.values)


def test_a_part_and_the_singular_values_are_of_the_same_tensor(engine: Engine, source: Source):
    with open_checkpoint(source.path) as checkpoint:
        values = checkpoint.read_tensor(NAME)
    query = TensorPartQuery(source=source, subject=NAME, pooling="mean", rows=(2, 6), cols=(1, 9), size=(100, 100))
    np.testing.assert_array_equal(ask(engine, query).values, values[2:6, 1:9])
    found = ask(engine, SpectrumQuery(source=source, subject=NAME)).values
    np.testing.assert_allclose(found, np.linalg.svd(values.astype(np.float64), compute_uv=False), atol=1e-6)


def test_what_is_not_there_is_named(engine: Engine, source: Source):
    with pytest.raises(CheckpointError, match="no tensor named nothing"):
        ask(engine, TensorQuery(source=source, subject="nothing", pooling="mean"))
    with pytest.raises(TraceError, match=f"no decoder.cross layer 0 head {N_HEADS}"):
        ask(engine, TensorQuery(source=source, subject=cut(N_HEADS), pooling="mean"))


def test_progress_rises_to_the_end_and_a_cancelled_question_stops(engine: Engine, source: Source):
    query = TensorQuery(source=source, subject=NAME, pooling="mean")
    told: list[float] = []
    engine.answer(query, CancelToken(), told.append)
    assert told == sorted(told) and told[-1] == 1.0
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        engine.answer(query, cancel, told.append)
