"""The learning-rate schedules, with the update that a running training has come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from PySide6.QtCore import Slot
from PySide6.QtGui import QPalette, QShowEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from core_model.training.schedules import SCHEDULES
from explorer.panels.panel import Panel
from explorer.plots.curves import CurvePlot
from explorer.state.app_state import AppState
from explorer.state.training import TrainingSnapshot
from explorer.state.training_moves import set_draft
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_2, SPACE_3
from explorer.viewmodels.schedule import schedule_picture, schedule_problem
from explorer.viewmodels.training_form import FORM, SCHEDULE_NAMES
from explorer.widgets.editors import ChoiceEditor, CountEditor, NumberEditor


class SchedulePanel(Panel):
    """Shows the schedule of the running training, else that of the form, which it can change as well."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._state = AppState()
        self._step: int | None = None
        self._drawn: object = None
        self._plot = CurvePlot(themes, self)
        self._words = QLabel(self)
        self._words.setWordWrap(True)
        self._words.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._editors: dict[str, ChoiceEditor | CountEditor | NumberEditor] = {
            "schedule": ChoiceEditor(tuple(SCHEDULE_NAMES.items())),
            "steps": CountEditor(),
            "warmup": CountEditor(),
            "peak_learning_rate": NumberEditor(),
        }
        for name, width in {"schedule": 176, "steps": 104, "warmup": 104, "peak_learning_rate": 96}.items():
            self._editors[name].setFixedWidth(width)
        tooltips = {field.name: field.tooltip for group in FORM for field in group.fields}
        for name, editor in self._editors.items():
            editor.setProperty("field", name)
            editor.setToolTip(tooltips[name])
            editor.value_picked.connect(self._on_editor_value_picked)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_3, SPACE_3, SPACE_3, SPACE_3)
        layout.setSpacing(SPACE_2)
        layout.addWidget(self._words)
        layout.addWidget(self._plot, 1)

    def controls(self) -> Sequence[QWidget]:
        names = {
            "schedule": "",
            "steps": self.tr("updates"),
            "warmup": self.tr("warmup"),
            "peak_learning_rate": self.tr("peak"),
        }
        widgets: list[QWidget] = []
        for name, editor in self._editors.items():
            if names[name]:
                label = QLabel(names[name])
                label.setBuddy(editor)
                widgets.append(label)
            editor.setAccessibleName(names[name] or self.tr("schedule"))
            widgets.append(editor)
        return widgets

    def show_state(self, state: AppState) -> None:
        self._state = state
        values = self._values()
        for name, editor in self._editors.items():
            editor.set_value(values[name])
            editor.setEnabled(not state.training.is_busy)
        if not state.training.is_busy and state.training.phase != "finished":
            self._step = None
        self._draw()

    def show_training(self, snapshot: TrainingSnapshot) -> None:
        self._step = snapshot.last.step
        if self.isVisible() and self._state.training.is_busy:
            self._plot.set_marker(float(self._step), self.tr("step {step}").format(step=self._step))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._draw()

    def zoom(self, step: int) -> None:
        {1: self._plot.zoom_in, -1: self._plot.zoom_out, 0: self._plot.reset_view}[step]()

    def _values(self) -> dict[str, Any]:
        training = self._state.training
        busy_with = training.settings if training.is_busy else None
        return asdict(busy_with) if busy_with else self._state.draft.values

    def _draw(self) -> None:
        if not self.isVisible():
            return
        values, is_busy = self._values(), self._state.training.is_busy
        problem = schedule_problem(values)
        step = self._step if is_busy else None
        wanted = (problem, {name: values[name] for name in (*self._editors, "d_model")}, is_busy, step)
        if wanted == self._drawn:
            return
        self._drawn = wanted
        self._words.setText(problem or self._sentence(values["schedule"]))
        self._words.setForegroundRole(QPalette.ColorRole.BrightText if problem else QPalette.ColorRole.PlaceholderText)
        self._plot.set_picture(None if problem else schedule_picture(values, step))

    def _sentence(self, schedule: str) -> str:
        whose = (
            self.tr("Shown: the training that is running.")
            if self._state.training.is_busy
            else self.tr("Shown: the settings of the training form.")
        )
        return f"{SCHEDULES[schedule].summary.capitalize()}. {whose}"

    @Slot(object)
    def _on_editor_value_picked(self, value: Any) -> None:
        self.noticed.emit(set_draft(**{self.sender().property("field"): value}))
