from __future__ import annotations

import os
from pathlib import Path

import pytest

from explorer.state.app_state import ModelInput
from explorer.state.given_file import GivenFile, kind_of


def test_a_file_that_has_changed_is_another_input(tmp_path: Path) -> None:
    path = tmp_path / "cat.png"
    path.write_bytes(b"one")
    given = GivenFile.at(path)
    assert GivenFile.at(path) == given
    path.write_bytes(b"other")
    assert GivenFile.at(path) != given
    path.write_bytes(b"two")  # of the size it had
    os.utime(path, ns=(0, given.stamp[1] + 1 if given.stamp else 1))
    assert GivenFile.at(path) != given


def test_a_file_that_is_not_there_can_be_given_too(tmp_path: Path) -> None:
    assert GivenFile.at(tmp_path / "none.wav").stamp is None


def test_reading_again_takes_the_files_as_they_are_now(tmp_path: Path) -> None:
    path = tmp_path / "cat.png"
    before = ModelInput(text="a cat", picture=GivenFile.at(path))
    path.touch()
    assert before.as_on_disk() == ModelInput(text="a cat", picture=GivenFile.at(path)) != before


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.PNG", "picture"), ("a.jpeg", "picture"), ("a.wav", "sound"), ("a.mp3", "sound"), ("a.txt", None), ("a", None)],
)
def test_a_file_is_known_by_its_ending(name: str, kind: str | None) -> None:
    assert kind_of(Path(name)) == kind
