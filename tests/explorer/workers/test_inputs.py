"""Pictures as the engine gives them to a small real model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core_model.cancel import CancelToken
from core_model.checkpoint import open_checkpoint
from core_model.errors import InputError
from core_model.trace import run_trace
from explorer.state.app_state import ModelInput
from explorer.state.given_file import GivenFile
from explorer.state.queries import InspectorQuery, MatrixQuery, PictureQuery, Query, R, TokensQuery, TraceQuery
from explorer.state.source import Source
from explorer.workers.answers import ANSWERS
from explorer.workers.engine import Engine
from tests.explorer.models import save_picture_encoder, save_towers


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A model that reads 8 x 8 pixels in four patches."""
    return Source(path=save_picture_encoder(tmp_path_factory.mktemp("models") / "pixels"))


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(ANSWERS)
    yield engine
    engine.close()


def ask(engine: Engine, query: Query[R]) -> R:
    return engine.answer(query, CancelToken(), lambda fraction: None)


@pytest.fixture
def flag(tmp_path: Path) -> ModelInput:
    """A picture of 8 x 8 pixels, red above and blue below."""
    colors = np.zeros((8, 8, 3), dtype=np.uint8)
    colors[:4, :, 0] = colors[4:, :, 2] = 255
    Image.fromarray(colors).save(tmp_path / "flag.png")
    return ModelInput(picture=GivenFile.at(tmp_path / "flag.png"))


def test_a_picture_is_read_as_patches_and_seen_as_it_is(engine: Engine, source: Source, flag: ModelInput) -> None:
    trace = TraceQuery(source=source, inputs=flag)
    tokens = ask(engine, TokensQuery(source=trace.source, inputs=flag))
    keys = tokens.keys("encoder.self")
    assert keys.unit == "patch" and keys.texts == ("class", "patch 0,0", "patch 0,1", "patch 1,0", "patch 1,1")
    answer = ask(engine, PictureQuery(trace=trace, site="encoder.self", layer=1, head=2, query=3))
    assert answer.seen[0, 0].tolist() == [255, 0, 0] and answer.seen[7, 7].tolist() == [0, 0, 255]
    whole = ask(engine, MatrixQuery(trace=trace, site="encoder.self", layer=1, head=2, size=(64, 64))).view.values
    np.testing.assert_allclose(answer.attention.weights, whole[3, 1:].reshape(2, 2), rtol=1e-6)
    assert answer.attention.place == (1, 0) and not answer.seen.flags.writeable


def test_text_and_picture_given_to_two_towers_are_compared(engine: Engine, flag: ModelInput, tmp_path: Path) -> None:
    """The cosine of both vectors, times e^scale, plus bias (Zhai et al. 2023, algorithm 1)."""
    folder, both = save_towers(tmp_path / "towers"), replace(flag, text="a cat")
    with open_checkpoint(folder) as checkpoint:
        assert flag.picture is not None
        trace = run_trace(checkpoint.load_model(), checkpoint.encode("a cat", picture=flag.picture.path))
        scale, bias = (checkpoint.read_weight(f"vectors.{name}")[0] for name in ("scale", "bias"))
    text, picture = trace.vectors["text"], trace.vectors["vision"]
    cosine = text @ picture / np.linalg.norm(text) / np.linalg.norm(picture)
    asked = [
        InspectorQuery(
            trace=TraceQuery(source=Source(path=folder), inputs=given), site=site, layer=0, head=0, cell=None
        )
        for given, site in ((both, "text.self"), (flag, "vision.self"))
    ]
    compared, alone = (ask(engine, query) for query in asked)
    assert compared.similarity == pytest.approx(np.exp(scale) * cosine + bias, abs=1e-5)
    assert alone.similarity is None


def test_a_picture_that_changed_after_it_was_given_is_not_read(
    engine: Engine, source: Source, flag: ModelInput
) -> None:
    assert flag.picture is not None
    flag.picture.path.write_bytes(b"something else")
    with pytest.raises(InputError, match=r"flag.png has changed on disk since it was opened: open it again."):
        ask(engine, TokensQuery(source=source, inputs=flag))
    now = flag.as_on_disk()
    with pytest.raises(InputError, match=r"flag.png is no picture"):
        ask(engine, TokensQuery(source=source, inputs=now))


def test_a_picture_that_is_not_there_is_named(engine: Engine, source: Source, tmp_path: Path) -> None:
    inputs = ModelInput(picture=GivenFile.at(tmp_path / "none.png"))
    with pytest.raises(InputError, match=r"none.png cannot be read"):
        ask(engine, TokensQuery(source=source, inputs=inputs))
