from __future__ import annotations

from pathlib import Path

import pytest

from core_model.results import Reads
from explorer.state.app_state import AppState, ModelInput, Selection
from explorer.state.given_file import GivenFile
from explorer.state.moves import with_model
from explorer.state.queries import tokens_query
from explorer.viewmodels.guidance import first_steps, picture_first
from tests.explorer.states import SOURCE, model_info, opened, site


@pytest.mark.parametrize(
    ("reads", "sentence", "command"),
    [
        (("text", "pair"), "Type a text, and see what each head attends to.", "focus_text"),
        (("text", "target"), "Type a source and a target text, and see what each head attends to.", "focus_text"),
        (("picture",), "Open a picture, or drop one on the window, and see what each head attends to.", "open_picture"),
        (
            ("sound", "target"),
            "Open a WAV file, or drop one on the window, and see what each head attends to.",
            "open_sound",
        ),
        (("text", "picture"), "Type a text, or open a picture, and see what each head attends to.", "open_picture"),
    ],
)
def test_a_model_asks_for_what_it_reads(reads: tuple[Reads, ...], sentence: str, command: str) -> None:
    assert first_steps(AppState(source=SOURCE, model=opened(reads=reads))) == (sentence, command)


def test_the_tower_that_is_looked_at_asks_first() -> None:
    info = model_info(sites=(site("text.self"), site("vision.self")))
    state = AppState(source=SOURCE, model=opened(info=info, reads=("text", "picture")))
    assert first_steps(state)[0].startswith("Type a text, or open a picture")
    state = AppState(source=SOURCE, model=state.model, selection=Selection(site="vision.self"))
    assert first_steps(state)[0].startswith("Open a picture")


def test_the_picture_panel_asks_for_what_it_lacks() -> None:
    picture = GivenFile(path=Path("/cat.png"), stamp=None)
    towers = opened(reads=("text", "picture"))
    assert picture_first(AppState())[1] == "open_folder"
    assert picture_first(AppState(source=SOURCE, model=opened())) == (
        "tiny reads no pictures. With one that does, this is where each query looks.",
        "",
    )
    assert picture_first(AppState(source=SOURCE, model=towers))[1] == "open_picture"
    given = AppState(source=SOURCE, model=towers, inputs=ModelInput(picture=picture))
    assert "choose a site that reads it" in picture_first(given)[0]


def test_a_model_of_vectors_promises_no_input() -> None:
    picture = GivenFile(path=Path("/cat.png"), stamp=None)
    state = AppState(source=SOURCE, inputs=ModelInput(text="5 17", picture=picture))
    state = with_model(opened(reads=(), has_tokenizer=False))(state)
    sentence, command = first_steps(state)
    assert "reads vectors" in sentence and "this window has no input for it" in sentence and command == "open_folder"
    assert state.inputs == ModelInput() and tokens_query(state) is None


def test_a_model_without_a_tokenizer_asks_for_ids() -> None:
    state = with_model(opened(has_tokenizer=False))(AppState(source=SOURCE))
    assert first_steps(state) == (
        "Type token ids, for example 5 17 2, and see what each head attends to.",
        "focus_text",
    )
