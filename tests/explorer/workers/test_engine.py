"""Answers of the engine over small real models."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from core_model.cancel import CancelToken, Progress
from core_model.checkpoint import Checkpoint
from core_model.errors import Cancelled, CheckpointError, TokenizerError
from core_model.nn.transformer import Transformer
from explorer.state.app_state import Cell, ModelInput
from explorer.state.errands import HealthQuery, SaveAsFamilyQuery
from explorer.state.queries import (
    HeadsQuery,
    InspectorQuery,
    MatrixQuery,
    OpenQuery,
    Query,
    R,
    TokensQuery,
    TraceQuery,
)
from explorer.state.source import Source, Span
from explorer.workers.answers import ANSWERS
from explorer.workers.engine import Engine
from tests.core_model.checkpoint import tiny
from tests.explorer.models import (
    N_HEADS,
    N_LAYERS,
    save_decoder,
    save_encoder,
    save_encoder_decoder,
    save_picture_encoder,
)

TEXT = ModelInput(text="a cat sat")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save_decoder(folder / "decoder")
    save_encoder(folder / "encoder")
    save_encoder(folder / "bare", with_tokenizer=False)
    save_picture_encoder(folder / "pixels")
    save_encoder_decoder(folder / "translator")
    return folder


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(ANSWERS)
    yield engine
    engine.close()


def ask(engine: Engine, query: Query[R]) -> R:
    return engine.answer(query, CancelToken(), lambda fraction: None)


def trace_of(path: Path, inputs: ModelInput = TEXT) -> TraceQuery:
    return TraceQuery(source=Source(path=path), inputs=inputs)


def matrix(trace: TraceQuery, *, size: int = 64, rows: Span | None = None, cols: Span | None = None) -> MatrixQuery:
    return MatrixQuery(trace=trace, site="decoder.self", layer=0, head=1, size=(size, size), rows=rows, cols=cols)


@pytest.mark.parametrize(
    ("name", "has_tokenizer", "reads"),
    [
        ("decoder", True, {"text"}),
        ("encoder", True, {"text", "pair"}),
        ("bare", False, {"text"}),
        ("translator", True, {"text", "target"}),
        ("pixels", False, {"picture"}),
    ],
)
def test_opening_tells_what_a_model_can_be_given(
    engine: Engine, folder: Path, name: str, has_tokenizer: bool, reads: set[str]
) -> None:
    opened = ask(engine, OpenQuery(source=Source(path=folder / name)))
    assert (opened.has_tokenizer, set(opened.reads)) == (has_tokenizer, reads)
    assert opened.normalizers == "softmax"


def test_tokens_stand_in_the_stack_that_reads_them(engine: Engine, folder: Path) -> None:
    source = Source(path=folder / "translator")
    tokens = ask(engine, TokensQuery(source=source, inputs=ModelInput(text="abc", target="de")))
    assert tokens.keys("decoder.cross").texts == ("a", "b", "c")
    assert tokens.queries("decoder.cross").texts == ("<start>", "d", "e")
    assert tokens.queries("encoder.self").texts == ("a", "b", "c")


def test_words_are_no_ids(engine: Engine, folder: Path) -> None:
    with pytest.raises(TokenizerError, match="'cat' is not a token id"):
        ask(engine, TokensQuery(source=Source(path=folder / "bare"), inputs=ModelInput(text="5 cat")))


def test_a_model_is_run_once_over_a_text(engine: Engine, folder: Path) -> None:
    query = trace_of(folder / "decoder")
    facts = ask(engine, query)
    assert engine.trace(query, CancelToken(), lambda fraction: None) is engine.trace(
        query, CancelToken(), lambda fraction: None
    )
    assert (facts.source, facts.inputs) == (query.source, query.inputs)
    assert facts.n_bytes > 0


def test_a_cancelled_run_is_not_kept(engine: Engine, folder: Path) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        engine.answer(trace_of(folder / "decoder"), cancel, lambda fraction: None)
    assert ask(engine, trace_of(folder / "decoder")).n_bytes > 0


def test_the_overview_has_every_head(engine: Engine, folder: Path) -> None:
    answer = ask(engine, HeadsQuery(trace=trace_of(folder / "decoder"), site="decoder.self", size=16))
    assert answer.thumbnails.shape[:2] == (N_LAYERS, N_HEADS)


def test_peaks_of_a_whole_matrix_are_its_rows_largest_weights(engine: Engine, folder: Path) -> None:
    answer = ask(engine, matrix(trace_of(folder / "decoder")))
    assert answer.view.exact
    np.testing.assert_array_equal(answer.row_peaks, answer.view.values.max(axis=1))


def test_peaks_of_a_part_are_those_of_the_whole_rows(engine: Engine, folder: Path) -> None:
    trace = trace_of(folder / "decoder")
    whole = ask(engine, matrix(trace)).view.values
    part = ask(engine, matrix(trace, rows=(3, 7), cols=(2, 4)))
    np.testing.assert_allclose(part.view.values, whole[3:7, 2:4], rtol=1e-5)
    np.testing.assert_allclose(part.row_peaks, whole[3:7].max(axis=1), rtol=1e-5)


def test_peaks_of_a_pooled_matrix_are_those_of_its_blocks(engine: Engine, folder: Path) -> None:
    trace = trace_of(folder / "decoder", ModelInput(text="abcdefgh"))
    whole = ask(engine, matrix(trace)).view.values
    pooled = ask(engine, matrix(trace, size=4))
    assert not pooled.view.exact
    np.testing.assert_allclose(pooled.row_peaks, whole.max(axis=1).reshape(4, 2).max(axis=1), rtol=1e-5)


def test_the_inspector_tells_of_the_head_and_of_the_cell_with_its_tokens(engine: Engine, folder: Path) -> None:
    trace = trace_of(folder / "decoder")
    whole = ask(engine, matrix(trace)).view.values
    head = {"trace": trace, "site": "decoder.self", "layer": 0, "head": 1}
    answer = ask(engine, InspectorQuery(**head, cell=Cell(query=5, key=2)))
    assert answer.cell is not None
    assert answer.cell.weight == pytest.approx(whole[5, 2], rel=1e-5)
    assert (answer.query_text, answer.key_text) == (TEXT.text[5], TEXT.text[2])
    assert answer.attention.mask.causal
    assert ask(engine, InspectorQuery(**head, cell=None)).cell is None


def test_what_crosses_to_the_window_cannot_be_written(engine: Engine, folder: Path) -> None:
    answer = ask(engine, matrix(trace_of(folder / "decoder")))
    for array in (answer.view.values, answer.view.masked, answer.row_peaks):
        assert not array.flags.writeable


def test_a_path_that_is_not_there_is_named(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nowhere"):
        ask(engine, OpenQuery(source=Source(path=tmp_path / "nowhere")))


def test_only_so_many_checkpoints_keep_their_files_open(engine: Engine, folder: Path) -> None:
    first = engine.checkpoint(Source(path=folder / "decoder"))
    for opening in range(1, 6):
        engine.checkpoint(Source(path=folder / "decoder", opening=opening))
    assert engine.checkpoint(Source(path=folder / "decoder")) is not first


def test_what_an_answer_still_reads_stays_open_whatever_is_opened_meanwhile(engine: Engine, folder: Path) -> None:
    """Four others, as many as are held, are opened on another lane while all weights are looked at."""
    source = Source(path=folder / "decoder")
    checkpoint = engine.checkpoint(source)
    name = next(iter(checkpoint.tensors))

    def open_others(fraction: float) -> None:
        for opening in range(1, 5):
            lane = threading.Thread(target=ask, args=(engine, OpenQuery(source=replace(source, opening=opening))))
            lane.start()
            lane.join()

    assert engine.answer(HealthQuery(source=source), CancelToken(), open_others).info.name == "decoder"
    with pytest.raises(CheckpointError, match="has been closed"):
        checkpoint.read_tensor(name)


def test_a_model_that_two_lanes_want_at_once_is_loaded_once(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, loaded = Source(path=folder / "decoder"), []
    together, load = threading.Barrier(2), Checkpoint.load_model

    def slow(checkpoint: Checkpoint, *, cancel: CancelToken, progress: Progress) -> Transformer:
        loaded.append(source)
        with suppress(threading.BrokenBarrierError):  # broken when no second one comes, as it should be
            together.wait(0.2)
        return load(checkpoint, cancel=cancel, progress=progress)

    monkeypatch.setattr(Checkpoint, "load_model", slow)
    with ThreadPoolExecutor(2) as lanes:
        first, second = lanes.map(lambda _: engine.model(source, CancelToken(), lambda fraction: None), range(2))
    assert first is second
    assert len(loaded) == 1


def test_saving_a_model_that_has_been_run_loads_nothing_again(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(path=tiny.write(tmp_path / "model"))
    model = engine.model(source, CancelToken(), lambda fraction: None)
    monkeypatch.setattr(Checkpoint, "load_model", lambda self, **more: pytest.fail("it was loaded again"))
    ask(engine, SaveAsFamilyQuery(source=source, family="gpt2", folder=tmp_path / "out"))
    saved = load_file(tmp_path / "out" / "model.safetensors")
    np.testing.assert_array_equal(
        saved["transformer.wte.weight"], model.state_dict()["decoder.embedding.token.weight"].numpy()
    )
