from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from core_model.errors import InputError, TokenizerError
from core_model.tokenize import Patches
from explorer.state.app_state import AppState, Cell, ModelInput, Selection, Viewport
from explorer.state.given_file import GivenFile
from explorer.state.queries import (
    EXACT_LIMIT,
    POOLED_AT_ONCE,
    HeadsQuery,
    InspectorQuery,
    MatrixQuery,
    TokensQuery,
    TraceQuery,
    heads_query,
    inspector_query,
    matrix_query,
    matrix_tile_query,
    picture_query,
    wanted,
)
from tests.explorer.states import INPUTS, SOURCE, encoding, opened, tokens, trace_facts, traced_state

FILE = GivenFile(path=Path("/given"), stamp=None)
PANELS = {"heads": heads_query, "matrix": matrix_query, "inspector": inspector_query}


def test_nothing_is_asked_before_anything_is_opened() -> None:
    assert wanted(AppState(), PANELS) == {}


def test_facts_are_asked_one_after_another() -> None:
    state = AppState(source=SOURCE, inputs=INPUTS)
    assert set(wanted(state, PANELS)) == {"open"}
    state = replace(state, model=opened())
    assert set(wanted(state, PANELS)) == {"open", "tokens"}
    state = replace(state, tokens=tokens())
    assert set(wanted(state, PANELS)) == {"open", "tokens", "trace"}
    state = replace(state, trace=trace_facts(), selection=Selection(site="decoder.self"))
    assert set(wanted(state, PANELS)) == {"open", "tokens", "trace", "heads", "matrix", "inspector"}


def test_a_model_without_text_is_not_run() -> None:
    state = AppState(source=SOURCE, model=opened())
    assert set(wanted(state, PANELS)) == {"open"}


def test_a_picture_alone_runs_a_model_that_reads_pictures_and_no_other() -> None:
    inputs = ModelInput(picture=FILE)
    state = AppState(source=SOURCE, model=opened(reads=("text", "picture")), inputs=inputs)
    assert wanted(state, PANELS)["tokens"] == TokensQuery(source=SOURCE, inputs=inputs)
    assert "tokens" not in wanted(replace(state, model=opened(reads=("text", "pair"))), PANELS)


def test_a_target_alone_is_nothing_to_run_on() -> None:
    state = AppState(source=SOURCE, model=opened(reads=("sound", "target")), inputs=ModelInput(target="hello"))
    assert "tokens" not in wanted(state, PANELS)


def test_a_tower_that_was_given_nothing_has_no_picture() -> None:
    assert matrix_query(traced_state(selection=Selection(site="vision.self"))) is None


def test_a_picture_is_asked_about_where_the_keys_are_patches() -> None:
    assert picture_query(traced_state()) is None
    patches = Patches(**vars(encoding("class", "patch 0,0", "patch 0,1")))
    state = traced_state(tokens=replace(tokens(), stacks={"decoder": patches}))
    first, pointed = picture_query(state), picture_query(replace(state, hover=Cell(query=2, key=1)))
    assert first is not None and first.query == 0
    assert pointed is not None and pointed.query == 2


@pytest.mark.parametrize(
    ("inputs", "failure", "remedy"),
    [
        (ModelInput(text="a"), "The text cannot be read", "focus_text"),
        (ModelInput(picture=FILE), "The picture cannot be read", "open_picture"),
        (ModelInput(sound=FILE, target="a"), "The sound or the text cannot be read", "open_sound"),
    ],
)
def test_a_failure_names_what_was_given_and_offers_another(inputs: ModelInput, failure: str, remedy: str) -> None:
    query = TokensQuery(source=SOURCE, inputs=inputs)
    assert (query.failure, query.remedy_for(InputError("no"))) == (failure, remedy)
    assert query.remedy_for(TokenizerError("no")) == "focus_text"


def test_a_hidden_panel_asks_nothing() -> None:
    assert "heads" not in wanted(traced_state(), {"matrix": matrix_query})


def test_another_text_makes_every_picture_wait_for_its_trace() -> None:
    state = traced_state(inputs=ModelInput(text="a dog"))
    assert set(wanted(state, PANELS)) == {"open", "tokens"}


def test_the_mouse_changes_the_inspector_alone() -> None:
    before = wanted(traced_state(), PANELS)
    after = wanted(traced_state(hover=Cell(query=1, key=0)), PANELS)
    assert {slot for slot in before if before[slot] != after[slot]} == {"inspector"}


def test_the_locked_cell_goes_before_the_one_under_the_mouse() -> None:
    locked = Selection(site="decoder.self", cell=Cell(query=2, key=2))
    query = inspector_query(traced_state(selection=locked, hover=Cell(query=0, key=0)))
    assert isinstance(query, InspectorQuery)
    assert query.cell == Cell(query=2, key=2)


def test_a_cell_of_a_longer_text_before_is_not_asked_about() -> None:
    query = inspector_query(traced_state(hover=Cell(query=1, key=7)))
    assert isinstance(query, InspectorQuery)
    assert query.cell is None


def test_colours_and_scale_ask_nothing_anew() -> None:
    state = traced_state()
    other = replace(state, theme="dark", display=replace(state.display, scale="log", colormap="magma"))
    assert wanted(state, PANELS) == wanted(other, PANELS)


def test_queries_of_equal_states_are_equal_and_hash_alike() -> None:
    one, other = wanted(traced_state(), PANELS), wanted(traced_state(), PANELS)
    assert one == other
    assert {hash(query) for query in one.values()} == {hash(query) for query in other.values()}


def test_overview_and_matrix_ask_for_the_same_trace() -> None:
    asked = wanted(traced_state(), PANELS)
    assert isinstance(asked["heads"], HeadsQuery)
    assert isinstance(asked["matrix"], MatrixQuery)
    assert asked["heads"].trace == asked["matrix"].trace == TraceQuery(source=SOURCE, inputs=INPUTS)


def _long_state(n: int, **changes: object) -> AppState:
    return traced_state(tokens=tokens(*("a",) * n), **changes)


@pytest.mark.parametrize("n", [3, EXACT_LIMIT])
def test_a_matrix_that_crosses_whole_needs_no_tile(n: int) -> None:
    port = Viewport(rows=(0, 2), cols=(0, 2), size=(500, 500))
    assert matrix_tile_query(_long_state(n, viewport=port)) is None


def test_zooming_into_a_long_matrix_asks_for_what_is_on_screen_in_its_pixels() -> None:
    port = Viewport(rows=(100, 300), cols=(50, 250), size=(400, 600))
    query = matrix_tile_query(_long_state(EXACT_LIMIT + 1, viewport=port))
    assert query is not None
    assert (query.rows, query.cols, query.size) == ((100, 300), (50, 250), (400, 600))


def test_the_whole_of_a_long_matrix_needs_no_tile() -> None:
    n = EXACT_LIMIT + 1
    port = Viewport(rows=(0, n), cols=(0, n), size=(400, 600))
    assert matrix_tile_query(_long_state(n, viewport=port)) is None


def test_a_viewport_of_a_longer_text_before_asks_nothing_outside_the_matrix() -> None:
    n = EXACT_LIMIT + 1
    port = Viewport(rows=(2000, 2100), cols=(0, 100), size=(400, 600))
    assert matrix_tile_query(_long_state(n, viewport=port)) is None


def test_a_very_long_matrix_is_sampled_at_once_and_pooled_after() -> None:
    state = _long_state(math.isqrt(POOLED_AT_ONCE) + 1)
    whole, detail = matrix_query(state), matrix_tile_query(state)
    assert whole is not None
    assert whole.reduce == "sample"
    assert detail == replace(whole, reduce="max")


def test_a_part_of_a_very_long_matrix_is_asked_for_as_of_any_long_one() -> None:
    port = Viewport(rows=(100, 300), cols=(50, 250), size=(400, 600))
    query = matrix_tile_query(_long_state(math.isqrt(POOLED_AT_ONCE) + 1, viewport=port))
    assert query is not None
    assert (query.rows, query.cols, query.reduce) == ((100, 300), (50, 250), "max")
