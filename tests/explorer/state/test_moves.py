from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core_model.results import RunInfo
from explorer.state.app_state import AppState, Cell, ModelInput, Selection, Tokens
from explorer.state.given_file import GivenFile
from explorer.state.moves import (
    Move,
    give_file,
    in_same_layout,
    lock_cell,
    open_source,
    pick_head,
    pick_site,
    set_inputs,
    set_thumbnail_size,
    step_head,
    with_model,
    with_tokens,
    with_trace,
)
from explorer.state.source import Source
from explorer.state.training_moves import with_killed_runs, with_training
from tests.explorer.states import INPUTS, SOURCE, encoding, model_info, opened, site, tokens, trace_facts, traced_state


@pytest.mark.parametrize(
    ("layer", "head", "settled"), [(1, 3, (1, 3)), (9, 9, (1, 3)), (-1, -5, (0, 0)), (0, 4, (0, 3))]
)
def test_a_head_outside_the_site_becomes_the_nearest_one(layer: int, head: int, settled: tuple[int, int]) -> None:
    chosen = pick_head(layer, head)(traced_state()).selection
    assert (chosen.layer, chosen.head) == settled


def test_stepping_stops_at_the_last_layer() -> None:
    state = traced_state()
    for _ in range(5):
        state = step_head(1, 0)(state)
    assert state.selection.layer == 1


def test_the_locked_cell_stays_when_another_head_is_picked() -> None:
    state = lock_cell(Cell(query=2, key=1))(traced_state())
    assert pick_head(1, 1)(state).selection.cell == Cell(query=2, key=1)


def test_another_site_lets_the_cell_go_and_keeps_to_its_own_sizes() -> None:
    model = opened(info=model_info(sites=(site("encoder.self"), site("decoder.cross", n_layers=1, n_heads=2))))
    state = traced_state(
        model=model, selection=Selection(site="encoder.self", layer=1, head=3, cell=Cell(query=0, key=0))
    )
    state = replace(state, tokens=replace(tokens(), stacks={"encoder": encoding("a"), "decoder": encoding("b")}))
    assert pick_site("decoder.cross")(state).selection == Selection(site="decoder.cross", layer=0, head=1)


def test_opening_counts_so_that_the_same_path_is_read_again() -> None:
    state = open_source(SOURCE.path)(traced_state())
    assert state.source == Source(path=SOURCE.path, opening=1)
    assert state.current_model is None
    assert state.inputs.text == INPUTS.text


def test_opening_brings_the_layout_for_looking_forward_unless_nobody_asked() -> None:
    state = traced_state(layout="train")
    assert open_source(Path("/models/other"))(state).layout == "explore"
    unasked = in_same_layout(open_source(Path("/models/other")))(state)
    assert (unasked.source, unasked.layout) == (Source(path=Path("/models/other"), opening=1), "train")


def test_opening_drops_the_second_text_which_another_model_may_not_take() -> None:
    state = traced_state(inputs=ModelInput(text="a", pair="b", target="c"))
    assert open_source(Path("/models/other"))(state).inputs == ModelInput(text="a")


def test_a_model_without_a_choice_made_shows_its_first_site() -> None:
    state = AppState(source=SOURCE, inputs=INPUTS)
    assert with_model(opened())(state).selection == Selection(site="decoder.self")


def test_a_model_that_was_overtaken_is_not_used() -> None:
    state = AppState(source=replace(SOURCE, opening=2), inputs=INPUTS)
    assert with_model(opened())(state) == state


def test_a_model_that_opened_is_the_newest_recent_file_once() -> None:
    other = Path("/models/other")
    state = AppState(source=SOURCE, recent=(other, SOURCE.path))
    assert with_model(opened())(state).recent == (SOURCE.path, other)


def test_a_sample_is_no_recent_file() -> None:
    source = replace(SOURCE, is_sample=True)
    assert with_model(opened(source))(AppState(source=source)).recent == ()


RUN = model_info(run=RunInfo(step=5, n_steps=9, text="abc", target="cba"))


def test_a_run_brings_its_own_example_where_the_input_is_left_from_another_model() -> None:
    state = open_source(Path("/models/run"))(traced_state())
    assert state.source is not None and state.inputs == INPUTS
    learned = with_model(opened(state.source, info=RUN, reads=("text", "target")))(state)
    assert learned.inputs == ModelInput(text="abc", target="cba")


@pytest.mark.parametrize(
    "change",
    [
        lambda state: open_source(Path("/models/run"), inputs=ModelInput(text="bca"))(state),
        lambda state: set_inputs(ModelInput(text="bca"))(open_source(Path("/models/run"))(state)),
        lambda state: open_source(SOURCE.path)(set_inputs(ModelInput(text="bca"))(state)),
    ],
    ids=["given with the run", "typed meanwhile", "typed for this run before"],
)
def test_a_text_that_was_meant_for_the_run_stays(change: Move) -> None:
    state = change(traced_state())
    assert state.source is not None
    assert with_model(opened(state.source, info=RUN))(state).inputs == ModelInput(text="bca")


def test_a_run_that_does_not_tell_its_example_keeps_the_input() -> None:
    state = open_source(Path("/models/run"))(traced_state())
    assert state.source is not None
    silent = model_info(run=RunInfo(step=5, n_steps=9))
    assert with_model(opened(state.source, info=silent))(state).inputs == INPUTS


def test_a_run_is_a_recent_file_once_some_of_it_is_saved() -> None:
    state = with_training(phase="running", run=Path("/runs/sort-1"))(AppState())
    assert state.recent == ()
    state = replace(with_training(saved_step=500)(state), recent=(Path("/b"), Path("/runs/sort-1")))
    assert with_training(saved_step=1000)(state).recent == (Path("/b"), Path("/runs/sort-1"))  # it keeps its place
    assert with_training(saved_step=500)(replace(state, recent=())).recent == (Path("/runs/sort-1"),)


def test_killed_runs_are_told_with_how_far_they_came_and_offered() -> None:
    state = with_killed_runs({Path("/runs/sort-1"): RunInfo(step=500, n_steps=2000)})(AppState())
    (notice,) = state.notices
    assert "sort-1" in notice.text and "step 500 of 2000" in notice.text and notice.severity == "info"
    assert notice.opens == Path("/runs/sort-1") and state.recent == (Path("/runs/sort-1"),)


@pytest.mark.parametrize(("text", "kept"), [("the cat", ""), ("5 17, 2", "5 17, 2")])
def test_a_model_without_a_tokenizer_keeps_ids_and_drops_words(text: str, kept: str) -> None:
    state = AppState(source=SOURCE, inputs=ModelInput(text=text))
    assert with_model(opened(has_tokenizer=False))(state).inputs.text == kept


def test_a_cell_outside_the_new_tokens_is_let_go() -> None:
    state = traced_state(selection=Selection(site="decoder.self", cell=Cell(query=2, key=1)))
    assert with_tokens(tokens("the", " cat"))(state).selection.cell is None


def test_another_text_lets_the_cell_go() -> None:
    state = traced_state(
        selection=Selection(site="decoder.self", cell=Cell(query=2, key=1)), hover=Cell(query=0, key=0)
    )
    state = set_inputs(ModelInput(text="a dog"))(state)
    assert (state.selection.cell, state.hover, state.current_tokens) == (None, None, None)


def test_a_model_keeps_what_it_reads_of_the_input_and_nothing_else(tmp_path: Path) -> None:
    picture = GivenFile.at(tmp_path / "cat.png")
    state = AppState(source=SOURCE, inputs=ModelInput(text="a cat", picture=picture))
    assert with_model(opened(reads=("text", "pair")))(state).inputs == ModelInput(text="a cat")
    assert with_model(opened(reads=("picture",), has_tokenizer=False))(state).inputs == ModelInput(picture=picture)
    assert with_model(opened(reads=("text", "picture")))(state).inputs == state.inputs


def _two_towers(**changes: object) -> AppState:
    info = model_info(sites=(site("text.self"), site("vision.self")))
    state = traced_state(
        model=opened(info=info, reads=("text", "picture")),
        inputs=ModelInput(text="a cat"),
        selection=Selection(site="text.self", cell=Cell(query=0, key=0)),
    )
    return replace(state, **changes)


def test_a_picture_given_to_two_towers_shows_the_one_that_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "cat.png"
    state = give_file("picture", path)(_two_towers())
    assert state.inputs == ModelInput(text="a cat", picture=GivenFile.at(path))
    assert state.selection == Selection(site="vision.self")


def test_taking_the_picture_away_leaves_the_rest_and_the_site(tmp_path: Path) -> None:
    state = give_file("picture", tmp_path / "cat.png")(_two_towers())
    assert give_file("picture", None)(state).inputs == ModelInput(text="a cat")
    assert give_file("picture", None)(state).selection.site == "vision.self"


def test_a_tower_that_was_given_nothing_is_left_for_the_one_that_was() -> None:
    state = _two_towers()
    read = Tokens(source=SOURCE, inputs=state.inputs, stacks={"vision": encoding("class", "patch")})
    assert with_tokens(read)(state).selection.site == "vision.self"
    both = replace(read, stacks={"text": encoding("a"), "vision": encoding("class")})
    assert with_tokens(both)(state).selection.site == "text.self"


def test_what_the_weights_told_goes_onto_the_card() -> None:
    info = model_info(warnings=("wte has 3 rows of zeros",))
    state = with_trace(replace(trace_facts(), info=info))(traced_state())
    assert state.model is not None
    assert state.model.info.warnings == ("wte has 3 rows of zeros",)


@pytest.mark.parametrize(("pixels", "size"), [(3, 8), (18, 16), (64, 64), (1000, 256)])
def test_thumbnails_are_made_for_the_pixels_they_have(pixels: int, size: int) -> None:
    assert set_thumbnail_size(pixels)(traced_state()).thumbnail_size == size


def test_attention_that_is_not_a_number_is_said_with_its_layers() -> None:
    facts = replace(trace_facts(), not_numbers=(("decoder.self", (1, 2)),))
    notices = with_trace(facts)(AppState()).notices
    assert [notice.severity for notice in notices] == ["warning"]
    assert "decoder self-attention, layer 1, 2, is not a number" in notices[0].text


def test_what_was_computed_otherwise_than_in_training_is_told() -> None:
    facts = replace(trace_facts(), notes=("positions were interpolated to 3 x 2 patches",))
    (notice,) = with_trace(facts)(AppState()).notices
    assert (notice.severity, notice.text) == ("info", "tiny: positions were interpolated to 3 x 2 patches")
