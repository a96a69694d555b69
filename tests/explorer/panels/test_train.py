from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from explorer.panels.train import TrainPanel
from explorer.state.answers import DeviceOption, TrainingOptions
from explorer.state.app_state import AppState
from explorer.state.training import TrainingDraft, TrainingFacts
from explorer.theme.manager import ThemeManager
from explorer.widgets.editors import ChoiceEditor, CountEditor, NumberEditor
from tests.explorer.training_events import SETTINGS

CPU = DeviceOption(key="cpu", label="CPU, 2 cores", precisions=("fp32", "bf16"))


class Form:
    """The panel with a state behind it, as the store would give it."""

    def __init__(self, panel: TrainPanel) -> None:
        self.panel = panel
        self.state = AppState()
        self.commands: list[str] = []
        panel.noticed.connect(self.apply)
        panel.command_requested.connect(self.commands.append)
        panel.show_state(self.state)

    def apply(self, move: Any) -> None:
        self.state = move(self.state)
        self.panel.show_state(self.state)

    def show(self, **changes: Any) -> None:
        self.apply(lambda state: replace(state, **changes))

    def editor(self, name: str) -> Any:
        return self.panel._editors[name]

    def error(self, name: str) -> str:
        return self.panel._rows[name].error


@pytest.fixture
def form(qtbot: QtBot, themes: ThemeManager) -> Iterator[Form]:
    panel = TrainPanel(themes)
    qtbot.addWidget(panel)
    yield Form(panel)


def test_fields_show_the_draft(form):
    form.show(draft=TrainingDraft(changes=(("steps", 777), ("task", "sort"), ("dropout", 0.25))))
    assert form.editor("steps").value() == 777
    assert form.editor("task").currentText() == "Sort"
    assert form.editor("dropout").text() == "0.25"


def test_an_untouched_warmup_follows_the_steps_so_a_short_run_can_start(form):
    form.editor("steps").setValue(20)
    assert form.editor("warmup").value() == 2
    assert form.panel._start.isEnabled() and form.state.draft.settings().warmup == 2
    form.editor("warmup").setValue(7)
    form.editor("steps").setValue(40)
    assert form.editor("warmup").value() == 7


def test_the_first_problem_is_said_beside_the_button(form):
    form.show(draft=TrainingDraft(changes=(("steps", 20), ("warmup", 400))))
    assert not form.panel._start.isEnabled()
    assert form.panel._saved.text().startswith("Warmup: ")
    form.show(draft=TrainingDraft())
    assert form.panel._start.isEnabled() and form.panel._saved.text() == ""


def test_an_edit_changes_the_draft(form):
    form.editor("batch").setValue(17)
    assert form.state.draft.values["batch"] == 17


def test_typing_a_number_keeps_the_text_as_it_is_typed(form, qtbot):
    editor = form.editor("peak_learning_rate")
    editor.selectAll()
    qtbot.keyClicks(editor, "1e-3")
    assert editor.text() == "1e-3"
    assert form.state.draft.values["peak_learning_rate"] == 1e-3


def test_text_that_is_no_number_is_reported_at_its_field_and_nothing_can_start(form, qtbot):
    editor = form.editor("dropout")
    editor.selectAll()
    qtbot.keyClicks(editor, "lots")
    assert form.error("dropout") == "It must be a finite number at least 0 and below 1"
    assert not form.panel._start.isEnabled()


def test_heads_that_do_not_divide_the_width_are_reported_at_the_heads(form):
    form.editor("n_heads").setValue(5)
    assert form.error("n_heads") == "Width, 64, must be a multiple of it"
    assert form.error("d_model") == ""
    form.editor("n_heads").setValue(8)
    assert form.error("n_heads") == "" and form.panel._start.isEnabled()


def test_an_empty_peak_is_the_articles_and_only_inverse_square_root_has_one(form, qtbot):
    editor = form.editor("peak_learning_rate")
    editor.selectAll()
    qtbot.keyClick(editor, "\b")
    assert form.state.draft.values["peak_learning_rate"] is None and form.panel._start.isEnabled()
    form.show(draft=TrainingDraft(changes=(("peak_learning_rate", None), ("schedule", "linear"))))
    assert "nly inverse square root has one of its own" in form.error("peak_learning_rate")


def test_a_text_is_asked_for_only_by_the_language_model(form):
    assert form.panel._rows["text"].isHidden()
    form.show(draft=TrainingDraft(changes=(("task", "language_model"),)))
    assert not form.panel._rows["text"].isHidden()
    assert form.error("text") == "Language model learns from a text file, so choose one"


def test_only_devices_and_precisions_that_there_are_can_be_chosen(form):
    form.panel.draw(TrainingOptions(devices=(CPU,)))
    device, precision = form.editor("device"), form.editor("precision")
    assert [device.itemText(i) for i in range(device.count())] == ["CPU, 2 cores"]
    assert [precision.itemData(i) for i in range(precision.count())] == ["fp32", "bf16"]


def test_start_asks_for_the_command(form):
    form.panel._start.click()
    assert form.commands == ["train_start"]


@pytest.mark.parametrize("phase", ["starting", "running", "paused"])
def test_while_a_training_is_under_way_it_can_be_stopped_but_no_other_started(form, phase):
    form.show(training=TrainingFacts(phase=phase, settings=SETTINGS))
    assert not form.panel._start.isEnabled()
    assert form.panel._stop.isEnabled() and not form.panel._stop.isHidden()


def test_a_saved_run_can_be_opened(form):
    assert not form.panel._open.isEnabled()
    form.show(training=TrainingFacts(phase="finished", settings=SETTINGS, run=Path("/runs/reverse-1"), saved_step=9))
    assert form.panel._open.isEnabled()
    assert form.panel._saved.text() == "Saved to step 9: /runs/reverse-1"
    form.panel._open.click()
    assert form.commands == ["train_open"]


def test_the_wheel_scrolls_the_form_and_changes_no_value(form, qtbot):
    from PySide6.QtCore import QPoint, QPointF, Qt
    from PySide6.QtGui import QWheelEvent

    for editor in (CountEditor(), ChoiceEditor((("a", "A"), ("b", "B")))):
        qtbot.addWidget(editor)
        editor.set_value(1 if isinstance(editor, CountEditor) else "a")
        point = QPointF(5, 5)
        wheel = QWheelEvent(
            point, point, QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        editor.wheelEvent(wheel)
        assert not wheel.isAccepted()


def test_a_number_editor_shows_none_as_empty(qtbot):
    editor = NumberEditor()
    qtbot.addWidget(editor)
    editor.set_value(0.5)
    editor.set_value(None)
    assert editor.text() == ""


def test_after_start_the_next_key_is_not_typed_into_a_field(form: Form, qtbot: QtBot) -> None:
    panel = form.panel
    with qtbot.waitExposed(panel):
        panel.show()
    panel.activateWindow()
    panel._start.setFocus()
    form.show(training=TrainingFacts(phase="starting", settings=SETTINGS, n_threads=1))
    assert panel.window().focusWidget() is panel
