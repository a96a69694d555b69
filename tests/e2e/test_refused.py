"""A checkpoint without attention to show, and the way back from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot
from safetensors.numpy import save_file

from explorer.app import Explorer
from explorer.chrome.centre import Centre
from explorer.state.app_state import ModelInput
from explorer.state.moves import open_source
from tests.e2e.conftest import Launch, wait_until_idle


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    save_file({"strange": np.eye(3, dtype=np.float32)}, tmp_path / "model.safetensors")
    return tmp_path


def tab(explorer: Explorer) -> str:
    """The panel at the centre."""
    centre = explorer.window.centralWidget()
    assert isinstance(centre, Centre) and centre.current is not None
    return centre.current.spec.key


def open_next(explorer: Explorer, qtbot: QtBot, path: Path) -> None:
    explorer.store.apply(open_source(path, inputs=ModelInput(text="a cat")))
    wait_until_idle(qtbot, explorer)


def test_after_a_refused_checkpoint_the_next_model_is_seen_where_the_last_one_was(
    launch: Launch, qtbot: QtBot, model_folder: Path, strange: Path
) -> None:
    explorer = launch(model_folder / "decoder", "a cat")
    assert tab(explorer) == "matrix"
    for _ in range(2):
        open_next(explorer, qtbot, strange)
        assert tab(explorer) == "tensors"
    open_next(explorer, qtbot, model_folder / "decoder")
    assert tab(explorer) == "matrix"


def test_tensors_that_the_person_chose_stay_on_screen(
    launch: Launch, qtbot: QtBot, model_folder: Path, strange: Path
) -> None:
    explorer = launch(model_folder / "decoder", "a cat")
    open_next(explorer, qtbot, strange)
    for number in (1, 3):
        explorer.window.show_centre_tab(number - 1)
    open_next(explorer, qtbot, model_folder / "decoder")
    assert tab(explorer) == "tensors"


def test_no_command_leads_to_a_text_field_that_takes_nothing(
    launch: Launch, qtbot: QtBot, model_folder: Path, strange: Path
) -> None:
    explorer = launch(strange)
    (edit,) = [action for action in explorer.window.actions() if action.text() == "Edit text"]
    assert not edit.isEnabled()
    qtbot.keyClick(explorer.window, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    open_next(explorer, qtbot, model_folder / "decoder")
    assert edit.isEnabled()


def test_the_wait_for_every_answer_is_not_over_when_one_asks_for_the_next(
    launch: Launch, model_folder: Path, strange: Path
) -> None:
    explorer = launch(model_folder / "decoder", "a cat")
    explorer.store.apply(open_source(strange))
    assert explorer.wait_until_idle(30)
    assert explorer.window.host("tensors").picture is not None
