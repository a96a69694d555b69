from __future__ import annotations

from pathlib import Path

import pytest

from explorer.chrome.dropping import DropError, drop_move
from explorer.state.app_state import InputText, Source
from tests.explorer.states import traced_state


def test_a_text_file_becomes_the_text_and_the_model_stays(tmp_path: Path) -> None:
    path = tmp_path / "poem.txt"
    path.write_text("a rose\n", encoding="utf-8")
    state = traced_state()
    after = drop_move(path, state)(state)
    assert after.inputs == InputText(text="a rose")
    assert after.source == state.source


@pytest.mark.parametrize("name", ["model.safetensors", "folder.txt/", "config.json"])
def test_anything_else_is_opened(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("/"):
        path.mkdir()
    state = traced_state()
    assert drop_move(path, state)(state).source == Source(path=path, opening=1)


def test_a_huge_text_is_refused_with_its_size(tmp_path: Path) -> None:
    path = tmp_path / "war.txt"
    path.write_bytes(b"a" * (5 << 20))
    with pytest.raises(DropError, match="5,242,880 bytes"):
        drop_move(path, traced_state())
