"""Training from the window: form, start, watch, pause, resume, step, stop, open what was trained."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from core_model.cancel import CancelToken
from core_model.checkpoint import native
from core_model.errors import TrainingError
from core_model.training.control import TrainControl
from core_model.training.runs import Run
from core_model.training.settings import TrainingSettings
from explorer import app
from explorer.actions.commands import command
from explorer.app import Explorer
from explorer.settings.schema import Settings
from explorer.state.moves import set_layout
from explorer.state.training import WatchedHead
from explorer.state.training_moves import set_draft, set_runs_folder, watch_head
from explorer.workers import training as training_worker
from tests.core_model.watched_control import WatchedControl
from tests.e2e.conftest import PATIENCE_MS, Launch, wait_until_idle

SMALL: dict[str, Any] = {
    "d_model": 16,
    "n_heads": 2,
    "n_layers": 1,
    "d_hidden": 16,
    "length": 5,
    "batch": 4,
    "warmup": 10,
    "watch_every": 10,
}


class Training:
    """The application in its layout for training, and what a person does there."""

    def __init__(self, explorer: Explorer, qtbot: QtBot) -> None:
        self.explorer, self.qtbot = explorer, qtbot

    def run(self, key: str) -> None:
        """A command, as from its menu: only when it is enabled."""
        desk = self.explorer.window._desk
        assert command(key).is_enabled(desk), key
        command(key).run(desk)

    @property
    def facts(self) -> Any:
        return self.explorer.store.state.training

    @property
    def step(self) -> int:
        snapshot = self.explorer.trainer.snapshot
        return 0 if snapshot is None else snapshot.last.step

    @property
    def has_news(self) -> bool:
        """Whether there are numbers that the window was not told yet."""
        trainer = self.explorer.trainer
        return trainer._thread.snapshot(trainer.snapshot) is not None

    def until(self, condition: Callable[[], bool]) -> None:
        self.qtbot.waitUntil(condition, timeout=PATIENCE_MS)

    def start(self, **values: Any) -> None:
        self.explorer.store.settle(set_draft(**(SMALL | {"steps": 1_000_000} | values)))
        self.run("train_start")
        self.until(lambda: self.step > 0 or self.facts.phase == "failed")


@pytest.fixture
def training(launch: Launch, qtbot: QtBot, tmp_path) -> Training:
    explorer = launch()
    explorer.store.settle(set_layout("train"))
    explorer.store.settle(set_runs_folder(tmp_path))
    wait_until_idle(qtbot, explorer)
    return Training(explorer, qtbot)


def test_curves_and_attention_move_while_it_trains(training):
    training.start()
    panel: Any = training.explorer.window.host("progress").panel
    training.until(lambda: panel._curves[0].picture is not None)
    first = len(panel._curves[0].picture.series[0].x), panel._matrix.picture
    training.until(lambda: panel._matrix.picture is not first[1])
    training.until(lambda: len(panel._curves[0].picture.series[0].x) > first[0])
    training.run("train_stop")
    training.until(lambda: training.facts.phase == "finished")


def test_pause_holds_step_makes_one_update_and_resume_goes_on(training, qtbot, monkeypatch):
    monkeypatch.setattr(training_worker, "TrainControl", WatchedControl)
    training.start()
    control = training.explorer.trainer._thread.control
    training.run("train_pause")
    training.until(lambda: control.holding and not training.has_news)
    held = training.step
    qtbot.wait(300)
    assert training.step == held and training.facts.phase == "paused"
    training.run("train_step")
    training.until(lambda: training.step > held and control.holding and not training.has_news)
    assert training.step == held + 1
    training.run("train_pause")
    training.until(lambda: training.step > held + 1)
    assert training.facts.phase == "running"


def test_a_training_that_was_killed_is_told_of_at_the_next_start_and_opens_with_its_example(
    qapp: QApplication, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "runs_path", lambda: tmp_path)
    run = Run(TrainingSettings(**SMALL, steps=1000, save_every=2), tmp_path / "reverse-1")
    events = run.events(cancel=CancelToken(), control=TrainControl())
    assert [next(events).step for _ in range(3)] == [1, 2, 3]
    (tmp_path / ".reverse-1.training").touch()  # as it is left: nobody holds its lock
    explorer = app.build(qapp, Settings(theme="light"))
    explorer.start_when_painted(None)
    with qtbot.waitExposed(explorer.window):
        explorer.window.show()
    qtbot.waitUntil(lambda: bool(explorer.store.state.notices), timeout=PATIENCE_MS)
    (notice,) = explorer.store.state.notices
    assert "reverse-1" in notice.text and "step 2 of 1000" in notice.text
    (button,) = [one for one in explorer.window.findChildren(QPushButton) if one.text() == "Open it"]
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    wait_until_idle(qtbot, explorer)
    state = explorer.store.state
    assert state.model is not None and state.model.source.path == tmp_path / "reverse-1" == state.recent[0]
    assert state.inputs.text and state.inputs.target == state.inputs.text[::-1] and state.is_traced
    explorer.close()
    qapp.setStyleSheet("")


def test_a_stopped_training_is_saved_and_opens_with_the_example_that_was_watched(training, qtbot, tmp_path):
    training.start()
    training.explorer.store.apply(watch_head(WatchedHead(head=1)))
    training.run("train_stop")
    training.until(lambda: training.facts.phase == "finished")
    assert training.facts.saved_step == training.step
    training.run("train_open")
    wait_until_idle(qtbot, training.explorer)
    state = training.explorer.store.state
    assert (state.selection.site, state.selection.layer, state.selection.head) == ("decoder.cross", 0, 1)
    assert state.layout == "explore" and state.model.info.path == tmp_path / "reverse-1"
    assert state.inputs.target == state.inputs.text[::-1] != ""
    picture: Any = training.explorer.window.host("matrix").picture
    assert picture.weights.sum(axis=1) == pytest.approx(1, abs=1e-5)


def test_a_finished_training_ran_every_step_of_its_form(training):
    training.start(task="copy", steps=25, schedule="linear")
    training.until(lambda: training.facts.phase == "finished")
    assert (training.step, training.facts.saved_step) == (25, 25)
    training.start(task="sort", steps=20, schedule="cosine")
    training.until(lambda: training.facts.phase == "finished" and training.step == 20)


def test_what_cannot_be_trained_is_said_where_the_progress_would_be(training, tmp_path):
    training.start(task="language_model", text=tmp_path / "gone.txt")
    panel: Any = training.explorer.window.host("progress").panel
    assert training.facts.phase == "failed"
    assert "gone.txt cannot be read" in panel._words.text()
    assert "gone.txt cannot be read" in panel._page.currentWidget().widget().accessibleName()
    (notice,) = training.explorer.store.state.notices
    assert "gone.txt cannot be read" in notice.text and not notice.details  # no traceback: it is no fault of ours


def test_a_form_with_a_problem_does_not_start(training):
    training.explorer.store.settle(set_draft(d_model=16, n_heads=3))
    assert not command("train_start").is_enabled(training.explorer.window._desk)


def test_window_answers_within_100_ms_while_it_trains(training, qtbot):
    training.start(d_model=64, n_heads=4, n_layers=2, d_hidden=256, length=12, batch=64)
    gaps: list[float] = []
    last = time.perf_counter()

    def beat() -> None:
        nonlocal last
        now = time.perf_counter()
        gaps.append(now - last)
        last = now

    timer = QTimer(interval=10)
    timer.timeout.connect(beat)
    timer.start()
    qtbot.waitUntil(lambda: len(gaps) >= 100, timeout=PATIENCE_MS)
    timer.stop()
    assert sorted(gaps)[len(gaps) // 2] < 0.1


def test_closing_while_it_trains_asks_once_stops_and_saves(training, qtbot, tmp_path, monkeypatch):
    training.start()
    asked: list[str] = []

    def answer(*arguments: Any) -> QMessageBox.StandardButton:
        asked.append(arguments[2])
        return QMessageBox.StandardButton.Cancel if len(asked) == 1 else QMessageBox.StandardButton.Close

    monkeypatch.setattr(QMessageBox, "question", answer)
    assert not training.explorer.window.close()
    assert training.facts.is_busy
    training.explorer.window.close()
    training.until(lambda: training.explorer.is_at_rest)
    assert len(asked) == 2 and "saves it" in asked[0]
    assert (tmp_path / "reverse-1" / "model.safetensors").exists()
    assert not training.explorer.trainer.is_busy


class Disk:
    """A disk that takes no weights until it is freed, and a person who answers questions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = True
        self.asked: list[str] = []
        self.answer = QMessageBox.StandardButton.Cancel
        self._write = native.write_weights
        monkeypatch.setattr(native, "write_weights", self._write_or_refuse)
        monkeypatch.setattr(QMessageBox, "question", self._answered)

    def _write_or_refuse(self, folder: Path, tensors: Any) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._write(folder, tensors)

    def _answered(self, parent: object, title: str, text: str, *buttons: object) -> QMessageBox.StandardButton:
        self.asked.append(text)
        return self.answer


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def stop_unsaved(training: Training) -> None:
    training.start()
    training.run("train_stop")
    training.until(lambda: training.facts.phase == "failed")


def test_a_run_that_could_not_be_saved_is_saved_on_closing_once_there_is_room(training, full_disk, tmp_path):
    window = training.explorer.window
    stop_unsaved(training)
    assert not window.close()
    assert window.isVisible() and "closing loses it" in full_disk.asked[0]
    full_disk.answer = QMessageBox.StandardButton.Save
    window.close()
    training.until(lambda: training.facts.phase == "failed")  # the disk is still full
    assert window.isVisible()
    full_disk.is_full = False
    window.close()
    training.until(lambda: training.explorer.is_at_rest)
    assert (tmp_path / "reverse-1" / "model.safetensors").is_file() and len(full_disk.asked) == 3


def test_a_run_that_could_not_be_saved_can_be_given_up(training, full_disk, tmp_path):
    stop_unsaved(training)
    full_disk.answer = QMessageBox.StandardButton.Discard
    full_disk.is_full = False
    assert training.explorer.window.close()
    assert len(full_disk.asked) == 1 and not list(tmp_path.iterdir())


def test_closing_a_training_that_its_disk_refuses_keeps_the_window(training, full_disk):
    training.start()
    full_disk.answer = QMessageBox.StandardButton.Close
    assert not training.explorer.window.close()
    training.until(lambda: training.facts.phase == "failed")
    assert training.explorer.window.isVisible() and training.explorer.trainer.can_save_again


def test_another_training_does_not_replace_one_that_could_not_be_saved_unasked(training, full_disk):
    stop_unsaved(training)
    full_disk.answer = QMessageBox.StandardButton.No
    training.run("train_start")
    assert "lose it" in full_disk.asked[0] and training.explorer.trainer.can_save_again
    full_disk.answer = QMessageBox.StandardButton.Yes
    training.run("train_start")
    assert training.facts.is_busy


def test_another_training_that_cannot_begin_leaves_the_one_that_could_not_be_saved(
    training, full_disk, monkeypatch, tmp_path
):
    stop_unsaved(training)

    def refuse(run: Run) -> None:
        raise TrainingError("the disk has 0 MiB free")

    monkeypatch.setattr(Run, "_require_room", refuse)
    full_disk.answer = QMessageBox.StandardButton.Yes
    training.run("train_start")
    training.until(lambda: training.facts.problem.startswith("the disk has 0 MiB free"))
    assert "see Train > Save again" in training.facts.problem
    full_disk.is_full = False
    training.run("train_save")
    training.until(lambda: training.facts.phase == "finished")
    assert (tmp_path / "reverse-1" / "model.safetensors").is_file()


def test_starting_from_another_layout_shows_the_training(training: Training):
    training.explorer.store.settle(set_layout("explore"))
    training.run("train_start")
    assert training.explorer.store.state.layout == "train"
    training.until(lambda: training.facts.phase == "running")
    training.run("train_stop")
    training.until(lambda: not training.facts.is_busy)


def test_a_window_closed_by_a_signal_tries_once_more_to_save_and_asks_nothing(training, full_disk, tmp_path):
    stop_unsaved(training)
    full_disk.is_full = False
    training.explorer.close()
    assert (tmp_path / "reverse-1" / "model.safetensors").is_file() and not full_disk.asked


def test_closing_without_a_training_asks_nothing(training, monkeypatch):
    def refuse(*arguments: Any) -> None:
        raise AssertionError("nobody should be asked")

    monkeypatch.setattr(QMessageBox, "question", refuse)
    assert training.explorer.window.close()


def test_keys_for_heads_lead_through_the_watched_ones_and_not_through_those_of_the_open_model(training: Training):
    training.start()
    trainer = training.explorer.trainer
    training.until(lambda: trainer.snapshot is not None and trainer.snapshot.probe is not None)
    before = training.explorer.store.state.selection
    training.run("next_head")
    state = training.explorer.store.state
    assert (state.watched.head, state.selection) == (1, before)
    training.run("train_stop")
    training.until(lambda: not training.facts.is_busy)


def test_a_second_click_on_start_before_the_button_is_gone_does_nothing(training: Training, qtbot: QtBot) -> None:
    training.explorer.store.settle(set_draft(**SMALL, steps=1_000_000))
    page = training.explorer.window.host("progress").panel
    button = next(found for found in page.findChildren(QPushButton) if found.text() == "Start training")
    for _ in range(2):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    training.until(lambda: training.step > 0)
    assert not training.explorer.store.state.notices
    training.run("train_stop")
    training.until(lambda: not training.explorer.trainer.is_busy)


def test_a_training_that_is_stopped_before_it_runs_is_not_said_to_run(training: Training) -> None:
    training.explorer.store.settle(set_draft(**SMALL, steps=1_000_000))
    phases = []
    training.explorer.store.watch(lambda new, old: phases.append(new.training.phase))
    training.run("train_start")
    training.run("train_stop")
    training.until(lambda: training.facts.phase == "finished")
    assert list(dict.fromkeys(phases)) == ["starting", "stopping", "finished"]
