"""A picture and a sound in the real window: opened, dropped, looked at, taken away, undone."""

from __future__ import annotations

import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from PySide6.QtCore import QMimeData, QPointF, QSize, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QAbstractButton, QDockWidget, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from explorer.actions.commands import command
from explorer.app import Explorer
from explorer.chrome.file_field import FileField
from explorer.chrome.top_bar import TopBar
from explorer.state.app_state import Cell, ModelInput
from explorer.state.given_file import GivenFile
from explorer.state.moves import give_file, lock_cell, open_source, pick_head, pick_site, set_inputs
from explorer.viewmodels.records import HeatmapPicture, PatchPicture
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.token_strip import TokenStrip
from tests.e2e.conftest import Launch, wait_until_idle
from tests.explorer.foreign import COLORS_YXK, save_models, save_picture, save_sound, vit


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_models(tmp_path_factory.mktemp("foreign"))


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    return save_picture(tmp_path / "cat.png")


def drop(qtbot: QtBot, explorer: Explorer, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    button, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    explorer.window.dropEvent(QDropEvent(QPointF(9, 9), Qt.DropAction.CopyAction, data, button, keys))
    wait_until_idle(qtbot, explorer)


def fields(explorer: Explorer) -> dict[str, FileField]:
    """The fields for files that are on screen, by what they say."""
    return {field.text: field for field in explorer.window.findChildren(FileField) if field.isVisible()}


def matrix(explorer: Explorer) -> HeatmapPicture:
    found = explorer.window.host("matrix").picture
    assert isinstance(found, HeatmapPicture)
    return found


def has_picture_panel(explorer: Explorer) -> bool:
    dock = explorer.window.findChild(QDockWidget, "dock_picture")
    assert dock is not None
    return dock.isVisible()


def test_a_person_opens_a_picture_and_sees_what_each_patch_attends_to(
    launch: Launch, qtbot: QtBot, foreign: Path, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer = launch(foreign / "vit")
    assert list(fields(explorer)) == ["Open a picture…"] and not has_picture_panel(explorer)
    monkeypatch.setattr(explorer.window.questions, "file", lambda title, kinds, beside: picture)
    qtbot.mouseClick(fields(explorer)["Open a picture…"].findChildren(QPushButton)[0], Qt.MouseButton.LeftButton)
    explorer.store.apply(pick_head(1, 2))
    wait_until_idle(qtbot, explorer)
    model = vit()
    model.set_attn_implementation("eager")
    pixels = torch.tensor((COLORS_YXK / 255 - 0.5) / 0.5, dtype=torch.float32).permute(2, 0, 1)
    with torch.no_grad():
        want = model(pixels[None], output_attentions=True).attentions[1][0, 2].numpy()
    np.testing.assert_allclose(matrix(explorer).values, want, atol=2e-5)
    assert matrix(explorer).row_labels[:2] == ("class", "patch 0,0")

    assert list(fields(explorer)) == ["cat.png"] and has_picture_panel(explorer)
    explorer.store.apply(lock_cell(Cell(query=5, key=0)))
    wait_until_idle(qtbot, explorer)
    shown = explorer.window.host("picture").picture
    assert isinstance(shown, PatchPicture) and shown.title == "Where query 5, patch 1,1, looks"
    np.testing.assert_array_equal(shown.image, COLORS_YXK)
    np.testing.assert_allclose(shown.weights, want[5, 1:].reshape(3, 3), atol=2e-5)
    explorer.window.show_layout("train")
    assert not has_picture_panel(explorer)
    explorer.window.show_layout("explore")
    assert has_picture_panel(explorer)


def test_a_dropped_file_is_read_by_a_model_that_reads_its_kind_and_refused_by_another(
    launch: Launch, qtbot: QtBot, foreign: Path, model_folder: Path, picture: Path, tmp_path: Path
) -> None:
    explorer = launch(foreign / "vit")
    drop(qtbot, explorer, picture)
    assert matrix(explorer).shape == (10, 10)
    drop(qtbot, explorer, save_sound(tmp_path / "hum.wav"))
    assert explorer.store.state.notices[-1].text == (
        "hum.wav is a sound: vit does not read sounds; open a model that reads sounds, such as Whisper."
    )
    assert explorer.store.state.inputs == ModelInput(picture=GivenFile.at(picture))

    explorer.store.apply(open_source(model_folder / "decoder"))
    wait_until_idle(qtbot, explorer)
    assert not fields(explorer) and not has_picture_panel(explorer)
    drop(qtbot, explorer, picture)
    assert explorer.store.state.notices[-1].text.startswith("cat.png is a picture: decoder does not read pictures")


def test_what_is_no_picture_is_said_where_the_matrix_would_be(
    launch: Launch, qtbot: QtBot, foreign: Path, tmp_path: Path
) -> None:
    (tmp_path / "cat.png").write_bytes(b"not a picture")
    explorer = launch(foreign / "vit")
    drop(qtbot, explorer, tmp_path / "cat.png")
    problem = explorer.controller.problem
    assert problem is not None and (problem.what, problem.remedy) == ("The picture cannot be read", "open_picture")
    assert problem.message.startswith("cat.png is no picture")
    assert explorer.window.host("matrix").picture is None and not explorer.store.state.notices


def test_no_tokens_are_shown_of_what_is_not_read(
    launch: Launch, qtbot: QtBot, foreign: Path, picture: Path, tmp_path: Path
) -> None:
    def shown() -> str:
        return explorer.window.host("tokens").findChildren(TokenStrip)[0].accessibleDescription()

    (tmp_path / "broken.png").write_bytes(b"not a picture")
    explorer = launch(foreign / "vit")
    drop(qtbot, explorer, picture)
    assert shown() == "tokens: 10"
    drop(qtbot, explorer, tmp_path / "broken.png")
    assert shown() == "tokens: 0"
    drop(qtbot, explorer, picture)
    assert shown() == "tokens: 10"
    explorer.store.apply(give_file("picture", None))
    wait_until_idle(qtbot, explorer)
    assert shown() == "tokens: 0"


def test_what_was_done_to_a_picture_stands_above_its_patches(
    launch: Launch, qtbot: QtBot, foreign: Path, tmp_path: Path
) -> None:
    name = "a-wide-picture-whose-name-leaves-little-room-for-anything-else-in-a-small-window.png"
    Image.new("RGB", (24, 12), "red").save(tmp_path / name)
    explorer = launch(foreign / "vit")
    explorer.window.resize(800, 600)
    drop(qtbot, explorer, tmp_path / name)
    dock = explorer.window.findChild(QDockWidget, "dock_tokens")
    assert dock is not None
    title, note = (
        next(label for label in dock.findChildren(ElidedLabel) if label.text() == text)
        for text in ("Tokens", f"{name}: resized from 24 x 12 to 12 x 12 pixels")
    )
    assert title.width() >= title.sizeHint().width() and 100 < note.width() < note.sizeHint().width()
    explorer.store.apply(give_file("picture", None))
    wait_until_idle(qtbot, explorer)
    assert note.text() == ""


def test_in_the_smallest_window_no_panel_lies_over_another(
    launch: Launch, qtbot: QtBot, foreign: Path, picture: Path
) -> None:
    explorer = launch(foreign / "vit")
    drop(qtbot, explorer, picture)
    explorer.window.resize(800, 600)
    qtbot.waitUntil(lambda: explorer.window.size() == QSize(800, 600))
    docks = [dock for dock in explorer.window.findChildren(QDockWidget) if dock.isVisible()]
    assert has_picture_panel(explorer)
    for one, other in combinations(docks, 2):
        assert not one.geometry().intersects(other.geometry()), (one.objectName(), other.objectName())


def test_a_picture_is_taken_away_and_undo_brings_it_back(
    launch: Launch, qtbot: QtBot, foreign: Path, picture: Path
) -> None:
    explorer = launch(foreign / "vit")
    explorer.store.apply(give_file("picture", picture))
    wait_until_idle(qtbot, explorer)
    before = matrix(explorer).values
    qtbot.mouseClick(fields(explorer)["cat.png"].findChildren(QToolButton)[0], Qt.MouseButton.LeftButton)
    wait_until_idle(qtbot, explorer)
    assert list(fields(explorer)) == ["Open a picture…"] and explorer.window.host("matrix").picture is None
    explorer.store.undo()
    wait_until_idle(qtbot, explorer)
    assert list(fields(explorer)) == ["cat.png"] and np.array_equal(matrix(explorer).values, before)


def test_a_picture_that_changed_on_disk_is_read_anew_with_the_model(
    launch: Launch, qtbot: QtBot, foreign: Path, picture: Path
) -> None:
    explorer = launch(foreign / "vit")
    drop(qtbot, explorer, picture)
    before = matrix(explorer).values
    Image.fromarray(255 - COLORS_YXK).save(picture)
    command("reopen").run(explorer.window.desk)
    wait_until_idle(qtbot, explorer)
    assert not np.allclose(matrix(explorer).values, before, atol=1e-3)


def test_a_sound_and_a_target_show_which_frames_each_token_attends_to(
    launch: Launch, qtbot: QtBot, foreign: Path, tmp_path: Path
) -> None:
    explorer = launch(foreign / "whisper")
    assert list(fields(explorer)) == ["Open a sound…"]
    drop(qtbot, explorer, save_sound(tmp_path / "hum.wav"))
    assert list(fields(explorer)) == ["hum.wav"] and matrix(explorer).col_labels[-1] == "0.38 s"
    sound = explorer.store.state.inputs.sound
    explorer.store.apply(set_inputs(ModelInput(sound=sound, target="3 5 17")))
    explorer.store.apply(pick_site("decoder.cross"))
    wait_until_idle(qtbot, explorer)
    assert matrix(explorer).shape == (3, 20)
    assert (matrix(explorer).row_labels, matrix(explorer).col_labels[1]) == (("3", "5", "17"), "0.02 s")
    assert not has_picture_panel(explorer)


def test_two_towers_read_a_text_and_a_picture_each_at_its_own_site(
    launch: Launch, qtbot: QtBot, foreign: Path, picture: Path
) -> None:
    explorer = launch(foreign / "clip", "5 17 29")
    assert matrix(explorer).row_labels == ("5", "17", "29")
    explorer.store.apply(pick_site("vision.self"))
    wait_until_idle(qtbot, explorer)
    assert explorer.window.host("matrix").picture is None and explorer.controller.problem is None
    drop(qtbot, explorer, picture)
    assert matrix(explorer).shape == (10, 10) and explorer.store.state.selection.site == "vision.self"
    explorer.store.apply(pick_site("text.self"))
    wait_until_idle(qtbot, explorer)
    assert matrix(explorer).row_labels == ("5", "17", "29")
    assert explorer.window.host("picture").picture is None


def test_the_key_for_the_text_goes_to_the_picture_where_no_text_is_read(
    launch: Launch, qtbot: QtBot, foreign: Path
) -> None:
    explorer = launch(foreign / "vit")
    explorer.window.activateWindow()
    command("focus_text").run(explorer.window.desk)
    button = fields(explorer)["Open a picture…"].findChildren(QPushButton)[0]
    qtbot.waitUntil(button.hasFocus)


@pytest.mark.parametrize("name", ["clip", "a-model-of-texts-and-pictures-with-a-long-name"])
def test_in_a_small_window_the_name_gives_way_before_any_button(
    launch: Launch, qtbot: QtBot, foreign: Path, tmp_path: Path, name: str
) -> None:
    explorer = launch(Path(shutil.copytree(foreign / "clip", tmp_path / name)))
    drop(qtbot, explorer, save_picture(tmp_path / "a-picture-with-a-long-name.png"))
    explorer.window.resize(800, 600)
    wait_until_idle(qtbot, explorer)
    bar = explorer.window.findChild(TopBar)
    assert bar is not None and explorer.window.width() == 800
    shown = [button for button in bar.findChildren(QAbstractButton) if button.isVisible() and button.text()]
    assert {"Explore", "Train", "Learn", "Export", "Open"} <= {button.text() for button in shown}
    cut = [button.text() for button in shown if button.width() < button.sizeHint().width()]
    assert cut == ([] if name == "clip" else [button.text() for button in shown if button.text().startswith("a-model")])
