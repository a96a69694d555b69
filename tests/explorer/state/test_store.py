from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path

from explorer.state.app_state import AppState, Cell, ModelInput, Selection
from explorer.state.moves import (
    hover_cell,
    open_source,
    pick_head,
    set_display,
    set_inputs,
    set_layout,
    set_theme,
    with_tokens,
)
from explorer.state.store import Store
from tests.explorer.states import tokens, traced_state


def test_a_watcher_hears_of_each_change_once_with_what_was_before() -> None:
    store, heard = Store(), []
    watcher = lambda new, old: heard.append((new.layout, old.layout))  # noqa: E731
    store.watch(watcher)
    store.update(layout="train")
    store.update(layout="train")
    assert heard == [("train", "explore")]


def test_a_change_made_by_a_watcher_is_heard_after_the_one_it_answers() -> None:
    store, heard = Store(), []

    def answer(new: AppState, old: AppState) -> None:
        if new.layout == "train":
            store.update(layout="learn")

    def listen(new: AppState, old: AppState) -> None:
        heard.append(new.layout)

    store.watch(answer)
    store.watch(listen)
    store.update(layout="train")
    assert heard == ["train", "learn"]


def test_undo_brings_back_the_selection_and_redo_the_change() -> None:
    store = Store(traced_state())
    store.apply(pick_head(1, 2))
    store.undo()
    assert (store.state.selection.layer, store.state.selection.head) == (0, 0)
    store.redo()
    assert (store.state.selection.layer, store.state.selection.head) == (1, 2)


def test_undo_of_opening_brings_back_the_model_with_its_facts() -> None:
    before = traced_state()
    store = Store(before)
    store.apply(open_source(Path("/models/other")))
    assert store.state.current_model is None
    store.undo()
    assert store.state == before


def test_the_tokens_of_a_text_that_was_replaced_are_not_kept_for_undo() -> None:
    store, first, second = Store(traced_state()), ModelInput(text="a"), ModelInput(text="b")
    store.apply(set_inputs(first))
    store.settle(with_tokens(tokens("a", inputs=first)))
    replaced = weakref.ref(store.state.tokens)
    store.apply(set_inputs(second))
    store.settle(with_tokens(tokens("b", inputs=second)))
    gc.collect()
    assert replaced() is None
    store.undo()
    assert store.state.inputs == first
    assert store.state.current_tokens is None


def test_facts_and_hover_are_no_steps_of_undo() -> None:
    store = Store(traced_state())
    store.settle(hover_cell(Cell(query=1, key=0)))
    assert not store.can_undo


def test_undo_leaves_what_was_said_since_and_what_the_mouse_points_at() -> None:
    store = Store(traced_state())
    store.apply(set_display(scale="log"))
    store.settle(hover_cell(Cell(query=1, key=0)))
    store.undo()
    assert store.state.display.scale == "linear"
    assert store.state.hover == Cell(query=1, key=0)


def test_a_new_change_ends_what_could_be_redone() -> None:
    store = Store(traced_state())
    store.apply(pick_head(1, 1))
    store.undo()
    store.apply(pick_head(0, 3))
    assert not store.can_redo


def test_a_change_that_changes_nothing_is_no_step() -> None:
    store = Store(traced_state())
    store.update(selection=replace(store.state.selection))
    assert not store.can_undo
    assert store.state.selection == Selection(site="decoder.self")


def test_undo_leaves_the_theme_and_the_layout_alone() -> None:
    store = Store()
    store.apply(set_display(colormap="grey"))
    store.settle(set_theme("dark"))
    store.settle(set_layout("train"))
    store.undo()
    assert (store.state.display.colormap, store.state.theme, store.state.layout) == ("viridis", "dark", "train")
