"""Export in the real window: what is written is what is on screen, and what the library computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QPushButton
from pytestqt.qtbot import QtBot

from core_model.checkpoint import open_checkpoint
from core_model.trace import run_trace
from explorer.actions.commands import command
from explorer.app import Explorer
from explorer.chrome.export_dialog import ExportDialog
from explorer.settings.schema import Settings
from explorer.settings.store import SettingsStore
from explorer.state.export import ExportChoices
from explorer.state.moves import pick_head
from explorer.widgets.paper import Paper
from explorer.widgets.remark import Remark
from tests.e2e.conftest import PATIENCE_MS, Launch, wait_until_idle

TEXT = "a cat sat on a mat."


def open_dialog(qtbot: QtBot, explorer: Explorer) -> ExportDialog:
    """Ctrl+E, and the preview."""
    qtbot.keyClick(explorer.window, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    dialog = explorer.window.findChild(ExportDialog)
    assert dialog
    paper = dialog.findChild(Paper)
    assert paper
    copy = button(dialog, "Copy image")
    assert (paper.text, copy.isEnabled()) == ("Drawing the figure", False)
    qtbot.waitUntil(lambda: paper.text != "Drawing the figure", timeout=PATIENCE_MS)
    assert copy.isEnabled() != paper.pixmap.isNull()
    return dialog


def save(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, dialog: ExportDialog, path: Path) -> str:
    """Save under that name; what the dialog says to it."""
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *arguments: (str(path), ""))
    remark = dialog.findChild(Remark)
    assert remark
    remark.clear()
    click(qtbot, dialog, "Save…")
    qtbot.waitUntil(lambda: bool(remark.text), timeout=PATIENCE_MS)
    return remark.text


def button(dialog: ExportDialog, title: str) -> QPushButton:
    return next(button for button in dialog.findChildren(QPushButton) if button.text() == title)


def click(qtbot: QtBot, dialog: ExportDialog, title: str) -> None:
    qtbot.mouseClick(button(dialog, title), Qt.MouseButton.LeftButton)


@pytest.fixture
def decoder(model_folder: Path) -> Path:
    return model_folder / "decoder"


def test_figures_and_numbers_of_the_head_on_screen_are_saved(
    qtbot: QtBot, launch: Launch, decoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer = launch(decoder, TEXT)
    explorer.store.apply(pick_head(1, 2))
    wait_until_idle(qtbot, explorer)
    dialog = open_dialog(qtbot, explorer)
    for name in ("figure.svg", "figure.pdf", "figure.png", "numbers.csv", "numbers.npz"):
        assert save(qtbot, monkeypatch, dialog, tmp_path / name) == f"Saved {tmp_path / name}"
    click(qtbot, dialog, "Close")
    assert "layer\u00a01, head\u00a02" in (tmp_path / "figure.svg").read_text(encoding="utf-8")
    with open_checkpoint(decoder) as checkpoint:
        expected = run_trace(checkpoint.load_model(), checkpoint.encode(TEXT)).attention("decoder.self", 1, 2)
    with np.load(tmp_path / "numbers.npz", allow_pickle=False) as archive:
        assert np.array_equal(archive["attention"], expected)
        assert "".join(archive["key_tokens"]) == TEXT


def test_a_disk_that_refuses_is_told_in_the_dialog_and_saving_again_works(
    qtbot: QtBot, launch: Launch, decoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialog = open_dialog(qtbot, launch(decoder, TEXT))
    text = save(qtbot, monkeypatch, dialog, tmp_path / "none" / "figure.svg")
    assert "its folder does not exist" in text
    assert save(qtbot, monkeypatch, dialog, tmp_path / "figure.svg").startswith("Saved")


def test_choices_are_remembered_for_the_next_export_and_the_next_start(
    qtbot: QtBot, launch: Launch, decoder: Path, tmp_path: Path
) -> None:
    keeper = SettingsStore(tmp_path / "settings.json")
    chosen = ExportChoices(format="png", width_mm=114.0, dpi=150)
    explorer = launch(decoder, TEXT, settings=Settings(theme="light", export=chosen), keeper=keeper)
    assert open_dialog(qtbot, explorer).choices == chosen
    explorer.close()
    assert keeper.load()[0].export == chosen


def test_nothing_is_offered_before_there_is_a_picture(qtbot: QtBot, launch: Launch) -> None:
    explorer = launch()
    qtbot.keyClick(explorer.window, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    assert explorer.window.findChild(ExportDialog) is None


def test_closing_the_window_with_the_dialog_open_leaves_nothing(qtbot: QtBot, launch: Launch, decoder: Path) -> None:
    explorer = launch(decoder, TEXT)
    open_dialog(qtbot, explorer)
    explorer.window.close()


def test_a_second_ctrl_e_shows_the_same_dialog(qtbot: QtBot, launch: Launch, decoder: Path) -> None:
    explorer = launch(decoder, TEXT)
    dialog = open_dialog(qtbot, explorer)
    explorer.window.show_export()
    assert explorer.window.findChildren(ExportDialog) == [dialog]
    assert command("export").shortcut == "Ctrl+E"
