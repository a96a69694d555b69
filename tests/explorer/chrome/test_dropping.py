from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core_model.results import Reads
from explorer.chrome.dropping import DropError, drop_move
from explorer.state.app_state import AppState, ModelInput
from explorer.state.given_file import GivenFile
from explorer.state.source import Source
from explorer.state.training_moves import set_draft
from tests.explorer.states import opened, traced_state


def test_a_text_file_becomes_the_text_and_the_model_stays(tmp_path: Path) -> None:
    path = tmp_path / "poem.txt"
    path.write_text("a rose\n", encoding="utf-8")
    state = traced_state()
    after = drop_move([path], state)(state)
    assert after.inputs == ModelInput(text="a rose")
    assert after.source == state.source


@pytest.mark.parametrize("name", ["model.safetensors", "folder.txt/", "config.json"])
def test_anything_else_is_opened(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("/"):
        path.mkdir()
    state = traced_state()
    assert drop_move([path], state)(state).source == Source(path=path, opening=1)


@pytest.mark.parametrize(
    ("name", "kind"), [("cat.PNG", "picture"), ("cat.jpg", "picture"), ("cat.webp", "picture"), ("cat.wav", "sound")]
)
def test_a_picture_or_a_sound_is_given_to_a_model_that_reads_it(tmp_path: Path, name: str, kind: Reads) -> None:
    path = tmp_path / name
    path.touch()
    state = traced_state(model=opened(reads=(kind,)))
    after = drop_move([path], state)(state)
    assert getattr(after.inputs, kind) == GivenFile.at(path) and after.source == state.source
    with pytest.raises(DropError, match=f"{name} is a {kind}: tiny does not read {kind}s; open a model that reads"):
        drop_move([path], traced_state())
    with pytest.raises(DropError, match=f"{name} is a {kind}: open a model that reads {kind}s"):
        drop_move([path], AppState())


def test_a_text_is_not_given_to_a_model_of_pictures(tmp_path: Path) -> None:
    path = tmp_path / "poem.txt"
    path.write_text("a rose", encoding="utf-8")
    with pytest.raises(DropError, match=r"poem.txt is a text: tiny does not read texts; open a model that reads texts"):
        drop_move([path], traced_state(model=opened(reads=("picture",))))


def test_a_huge_text_is_refused_with_its_size(tmp_path: Path) -> None:
    path = tmp_path / "war.txt"
    path.write_bytes(b"a" * (5 << 20))
    with pytest.raises(DropError, match="5,242,880 bytes"):
        drop_move([path], traced_state())


@pytest.mark.parametrize("task", ["copy", "language_model"])
def test_a_text_dropped_where_one_trains_is_what_the_model_learns_from(tmp_path: Path, task: str) -> None:
    path = tmp_path / "novel.txt"
    path.write_bytes(b"a" * (5 << 20))  # longer than any input
    before = set_draft(task=task, steps=7)(replace(traced_state(), layout="train"))
    after = drop_move([path], before)(before)
    assert (after.draft.values["text"], after.draft.values["task"]) == (path, "language_model")
    assert after.draft.values["steps"] == 7
    assert (after.inputs, after.source) == (before.inputs, before.source)


def test_the_files_of_a_checkpoint_dropped_together_open_their_folder(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("config.json", "model-1.safetensors", "model-2.safetensors", "vocab.txt")]
    for path in paths:
        path.touch()
    state = traced_state()
    assert drop_move(paths, state)(state).source == Source(path=tmp_path, opening=1)


@pytest.mark.parametrize("names", [("a.txt", "b.txt"), ("one/model.safetensors", "other/model.safetensors")])
def test_several_things_at_once_are_refused_with_their_number(tmp_path: Path, names: tuple[str, ...]) -> None:
    paths = [tmp_path / name for name in names]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    with pytest.raises(DropError, match="2 things were dropped at once"):
        drop_move(paths, traced_state())
