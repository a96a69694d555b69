from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from core_model.results import PositionEncoding
from core_model.training.schedules import SCHEDULES
from explorer.panels.panel import Panel
from explorer.panels.positions import PositionsPanel
from explorer.panels.progress import ProgressPanel
from explorer.panels.schedule import SchedulePanel
from explorer.state.app_state import AppState
from explorer.state.training import TrainingDraft, TrainingFacts, WatchedHead
from explorer.theme.manager import ThemeManager
from explorer.viewmodels.positions import positions_picture
from tests.explorer.training_events import SETTINGS, probe, snapshot

RUNNING = AppState(training=TrainingFacts(phase="running", settings=SETTINGS, n_threads=1))


@pytest.fixture
def shown(qtbot: QtBot, themes: ThemeManager):
    """Makes a panel, on screen, with its controls; gathers its intents."""

    def show(factory: Callable[[ThemeManager], Panel], state: AppState) -> Any:
        panel: Any = factory(themes)
        qtbot.addWidget(panel)
        for control in panel.controls():
            qtbot.addWidget(control)
        panel.moves, panel.commands = [], []
        panel.noticed.connect(panel.moves.append)
        panel.command_requested.connect(panel.commands.append)
        panel.resize(1000, 700)
        with qtbot.waitExposed(panel):
            panel.show()
        panel.show_state(state)
        return panel

    return show


def test_progress_says_what_to_do_before_the_first_training(shown):
    panel = shown(ProgressPanel, AppState())
    assert panel._page.currentWidget() is not panel._curves[0].parentWidget().parentWidget()
    panel._page.action_triggered.emit()
    assert panel.commands == ["train_start"]


def test_progress_starts_nothing_that_the_form_cannot_start_and_says_why(shown):
    panel = shown(ProgressPanel, AppState(draft=TrainingDraft(changes=(("steps", 20), ("warmup", 400)))))
    assert not panel._page._notice.button.isEnabled()
    assert panel._page._notice._why.text().startswith("Warmup: ")
    panel.show_state(AppState())
    assert panel._page._notice.button.isEnabled()


def test_pointing_at_the_watched_attention_reads_it_out_and_the_number_follows_the_training(shown):
    panel = shown(ProgressPanel, RUNNING)
    panel.show_training(snapshot(probe=probe()))
    assert panel._card.isHidden()
    panel._matrix.cell_hovered.emit(0, 0)
    weights = panel._matrix.picture.weights
    assert panel._card._weight.text() == f"{weights[0, 0]:.4f}"
    panel.show_state(replace(RUNNING, watched=WatchedHead(head=1)))
    assert panel._card._weight.text() == f"{panel._matrix.picture.weights[0, 0]:.4f}"


def test_a_training_that_is_being_prepared_can_be_cancelled(shown):
    panel = shown(ProgressPanel, AppState(training=TrainingFacts(phase="starting", settings=SETTINGS)))
    panel._page.cancel_requested.emit()
    assert panel.commands == ["train_stop"]


def test_the_loss_is_wide_where_a_place_would_stay_empty(shown):
    panel = shown(ProgressPanel, RUNNING)
    panel.show_training(snapshot(3))
    loss, accuracy = panel._curves[:2]
    n_shown = sum(not plot.isHidden() for plot in panel._curves)
    assert n_shown % 2 == 1, "the snapshot has no loss scale"
    QApplication.processEvents()
    assert loss.width() > 1.9 * accuracy.width()


def test_progress_draws_curves_and_attention_of_the_news(shown):
    panel = shown(ProgressPanel, RUNNING)
    panel.show_training(snapshot(3))
    assert panel._curves[0].picture.series[0].y.tolist() == [1, 1 / 2, 1 / 3]
    assert panel._matrix.picture.title == "Cross-attention, layer 0 head 0"
    assert panel._words.text() == "Running: reverse, step 3 of 400, 1.5 s, 1 thread"


def test_progress_shows_no_loss_scale_where_nothing_is_scaled(shown):
    panel = shown(ProgressPanel, RUNNING)
    panel.show_training(snapshot(3))
    assert panel._curves[-1].isHidden()
    panel.show_state(AppState(training=TrainingFacts(phase="starting", settings=SETTINGS)))
    panel.show_training(snapshot(4, loss_scale=1024.0))
    assert not panel._curves[-1].isHidden()


def pictures(panel: Any) -> list[Any]:
    return [*(plot.picture for plot in panel._curves), panel._matrix.picture]


def n_redrawn(panel: Any, before: list[Any]) -> int:
    return sum(old is not new for old, new in zip(before, pictures(panel), strict=True))


def test_progress_draws_one_picture_a_frame_each_in_turn_and_all_when_the_phase_changes(shown):
    panel = shown(ProgressPanel, RUNNING)
    panel.show_training(snapshot(3))
    first = pictures(panel)
    for step in range(4, 4 + len(first)):
        before = pictures(panel)
        panel.show_training(snapshot(step))
        assert n_redrawn(panel, before) <= 1
    assert n_redrawn(panel, first) == len(first) - 1  # there is no loss scale
    panel.show_state(replace(RUNNING, training=replace(RUNNING.training, phase="finished")))
    assert panel._curves[0].picture.series[0].x[-1] == 10
    assert panel._words.text() == "Stopped: reverse, step 10 of 400, 5.0 s, 1 thread"


def test_progress_draws_everything_after_a_single_step(shown):
    panel = shown(ProgressPanel, replace(RUNNING, training=replace(RUNNING.training, phase="paused")))
    panel.show_training(snapshot(3))
    before = pictures(panel)
    panel.show_training(snapshot(4))
    assert n_redrawn(panel, before) == len(before) - 1


def test_progress_follows_the_watched_head(shown):
    panel = shown(ProgressPanel, RUNNING)
    panel.show_training(snapshot(3))
    panel.show_state(replace(RUNNING, watched=WatchedHead(site="decoder.self", layer=1, head=2)))
    expected = probe(3).sites["decoder.self"].weights[1, 2]
    np.testing.assert_array_equal(panel._matrix.picture.weights, expected)


def test_progress_asks_for_another_head(shown):
    panel = shown(ProgressPanel, RUNNING)
    panel.show_training(snapshot(3))
    panel._mosaic.head_clicked.emit(1, 1)
    panel._site.activated.emit(0)
    states = [move(RUNNING).watched for move in panel.moves]
    assert states == [WatchedHead(layer=1, head=1), WatchedHead(site="decoder.self")]


def test_progress_draws_the_attention_anew_only_when_it_was_measured_anew(shown):
    panel = shown(ProgressPanel, RUNNING)
    news = snapshot(3)
    panel.show_training(news)
    drawn = panel._matrix.picture
    panel.show_training(replace(news, last=replace(news.last, step=4)))
    assert panel._matrix.picture is drawn


def test_progress_buttons_follow_the_phase(shown):
    panel = shown(ProgressPanel, AppState())
    assert not panel._pause.isEnabled() and not panel._stop.isEnabled()
    panel.show_state(RUNNING)
    assert panel._pause.text() == "Pause" and panel._step.isEnabled() and panel._stop.isEnabled()
    panel.show_state(replace(RUNNING, training=replace(RUNNING.training, phase="paused")))
    assert panel._pause.text() == "Resume"
    for button in (panel._pause, panel._step, panel._stop):
        button.click()
    assert panel.commands == ["train_pause", "train_step", "train_stop"]


def test_progress_forgets_the_last_training_when_another_starts(shown):
    panel = shown(ProgressPanel, RUNNING)
    panel.show_training(snapshot(3))
    panel.show_state(AppState(training=TrainingFacts(phase="starting", settings=SETTINGS)))
    assert panel._matrix.picture is None
    assert panel._words.text() == "Starting: reverse"


def test_schedule_shows_the_form_and_changes_it(shown):
    panel = shown(SchedulePanel, AppState())
    assert len(panel._plot.picture.series) == len(SCHEDULES) and panel._plot.picture.marker is None
    panel._editors["warmup"].setValue(50)
    assert panel.moves[-1](AppState()).draft.values["warmup"] == 50


def test_schedule_of_a_running_training_is_marked_with_its_step_and_cannot_be_changed(shown):
    panel = shown(SchedulePanel, RUNNING)
    panel.show_training(snapshot(7))
    panel.show_state(replace(RUNNING, watched=WatchedHead(layer=1)))
    assert (panel._plot.picture.marker, panel._plot.picture.marker_label) == (7, "step 7")
    assert panel._plot.picture.series[1].x[-1] == SETTINGS.steps
    assert not panel._editors["warmup"].isEnabled()


def test_schedule_with_a_problem_says_it_instead_of_drawing(shown):
    panel = shown(SchedulePanel, AppState(draft=TrainingDraft(changes=(("steps", 10), ("warmup", 20)))))
    assert panel._words.text() == "warmup is 20: it must end within the 10 steps of the run"
    assert panel._plot.picture is None


def encoding() -> PositionEncoding:
    values = np.linspace(-1, 1, 80, dtype=np.float32).reshape(10, 8)
    return PositionEncoding(
        stack="decoder", layer=0, kind="learned", table=values, dimensions=tuple(str(i) for i in range(8))
    )


def test_positions_draws_curves_and_matrix(shown):
    panel = shown(PositionsPanel, AppState())
    panel.draw(positions_picture(encoding(), AppState()))
    assert panel._matrix.picture.shape == (10, 8)
    assert len(panel._curves.picture.series) == 6
    assert panel._words.text().startswith("One trained vector a position")


def test_positions_a_click_on_a_column_toggles_its_curve(shown):
    panel = shown(PositionsPanel, AppState())
    panel.draw(positions_picture(encoding(), AppState(position_curves=(2,))))
    panel._matrix.cell_clicked.emit(4, 5)
    assert panel.moves[-1](AppState()).position_curves == (2, 5)


def test_positions_of_a_model_without_any_shows_words_alone(shown):
    panel = shown(PositionsPanel, AppState())
    panel.draw(positions_picture(PositionEncoding(stack="encoder", layer=0, kind="none"), AppState()))
    assert panel._curves.isHidden() and panel._matrix.isHidden()
    assert "adds nothing for position" in panel._words.text()


@pytest.mark.parametrize(("asked", "shown_length"), [(0, 2), (300, 300), (10**6, 4096)])
def test_positions_shows_as_many_positions_as_a_screen_can(shown, asked, shown_length):
    panel = shown(PositionsPanel, AppState())
    panel._length.setValue(asked)
    assert panel.moves[-1](AppState()).position_length == shown_length


def test_nothing_beside_it_moves_when_pause_becomes_resume_or_a_choice_of_sites_appears(shown, qtbot, themes):
    panel = shown(ProgressPanel, RUNNING)
    width = panel._pause.sizeHint().expandedTo(panel._pause.minimumSize()).width()
    panel.show_state(replace(RUNNING, training=replace(RUNNING.training, phase="paused")))
    assert panel._pause.text() == "Resume"
    assert panel._pause.sizeHint().expandedTo(panel._pause.minimumSize()).width() == width
    assert panel.controls()[-1] is panel._site


def test_the_curves_of_positions_say_at_which_position_their_values_are(shown):
    panel = shown(PositionsPanel, AppState())
    panel.draw(positions_picture(encoding(), AppState()))
    assert panel._curves._legend._where == "position 9"
