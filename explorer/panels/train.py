"""The training form: every setting with its own check beside it, and where the run is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from explorer.panels.panel import Panel
from explorer.settings.store import runs_path
from explorer.state.answers import TrainingOptions
from explorer.state.app_state import AppState
from explorer.state.training import TrainingFacts
from explorer.state.training_moves import set_draft, set_runs_folder
from explorer.theme.fonts import caption_font, heading_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_1, SPACE_2, SPACE_3
from explorer.viewmodels.training import saved_line
from explorer.viewmodels.training_form import (
    FORM,
    MEANINGS,
    FormField,
    FormGroup,
    device_choices,
    field_errors,
    field_hints,
    first_problem,
    needs_text,
    precision_choices,
    task_summary,
)
from explorer.widgets.editors import ChoiceEditor, CountEditor, NumberEditor, PathEditor
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.field_row import FieldRow

_LEAST_WIDTH = 336
Editor = ChoiceEditor | CountEditor | NumberEditor | PathEditor


class TrainPanel(Panel):
    """Edits the draft of AppState; starts nothing by itself."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._state = AppState()
        self._options = TrainingOptions(devices=())
        self._editors: dict[str, Editor] = {}
        self._rows: dict[str, FieldRow] = {}
        form = QWidget(self)
        column = QVBoxLayout(form)
        column.setContentsMargins(SPACE_3, SPACE_2, SPACE_3, SPACE_3)
        column.setSpacing(SPACE_1)
        self._summary = QLabel(self)
        self._summary.setWordWrap(True)
        self._summary.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        column.addWidget(self._summary)
        for group in FORM:
            self._add_group(column, group)
        self._add_folder(column)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(_scrolling(form), 1)
        layout.addLayout(self._footer())
        self.setMinimumWidth(_LEAST_WIDTH)

    def show_state(self, state: AppState) -> None:
        self._state = state
        values = state.draft.values
        self._offer_machine()
        for name, editor in self._editors.items():
            editor.set_value(values[name])
        self._folder.set_value(state.draft.folder or runs_path())
        errors, hints = field_errors(state.draft), field_hints(state.draft)
        for name, row in self._rows.items():
            row.set_error(errors.get(name, ""))
            row.set_hint(hints.get(name, ""))
        self._rows["text"].setVisible(needs_text(state.draft))
        self._summary.setText(task_summary(state.draft))
        self._show_facts(state.training, is_ready=not errors)

    def draw(self, picture: TrainingOptions) -> None:
        self._options = picture
        self.show_state(self._state)

    def _show_facts(self, facts: TrainingFacts, *, is_ready: bool) -> None:
        if facts.is_busy and self._start.hasFocus():
            self.take_focus()  # or a field of the form has it next
        self._start.setEnabled(is_ready and not facts.is_busy)
        self._stop.setVisible(facts.is_busy)
        self._stop.setEnabled(facts.phase != "stopping")
        self._open.setVisible(not facts.is_busy)
        self._open.setEnabled(facts.saved_step is not None)
        problem = "" if facts.is_busy else first_problem(self._state.draft)
        self._saved.set_text(problem or saved_line(facts))
        self._saved.setForegroundRole(QPalette.ColorRole.BrightText if problem else QPalette.ColorRole.PlaceholderText)

    def _offer_machine(self) -> None:
        """Only devices there are, and only what the chosen one can do."""
        if not self._options.devices:
            return
        device, precision = self._editors["device"], self._editors["precision"]
        assert isinstance(device, ChoiceEditor) and isinstance(precision, ChoiceEditor)
        device.set_choices(device_choices(self._options))
        precision.set_choices(precision_choices(self._options, self._state.draft.values["device"]))

    def _add_group(self, column: QVBoxLayout, group: FormGroup) -> None:
        title = QLabel(group.title, self)
        title.setFont(heading_font())
        title.setContentsMargins(0, SPACE_2, 0, 0)
        column.addWidget(title)
        for field in group.fields:
            editor = self._editor(field)
            editor.setProperty("field", field.name)
            editor.value_picked.connect(self._on_editor_value_picked)
            row = FieldRow(field.label, editor, unit=field.unit, tooltip=field.tooltip, parent=self)
            self._editors[field.name], self._rows[field.name] = editor, row
            column.addWidget(row)

    def _editor(self, field: FormField) -> Editor:
        if field.kind == "choice":
            return ChoiceEditor(field.choices, MEANINGS.get(field.name))
        if field.kind == "file":
            return PathEditor("file", self.tr("Choose a text to learn from"))
        return CountEditor() if field.kind == "count" else NumberEditor()

    def _add_folder(self, column: QVBoxLayout) -> None:
        self._folder = PathEditor("folder", self.tr("Choose where runs are kept"))
        self._folder.value_picked.connect(self._on_folder_value_picked)
        tooltip = self.tr("Each run gets a folder of its own in here, which opens like any other checkpoint.")
        column.addWidget(FieldRow(self.tr("Keep runs in"), self._folder, tooltip=tooltip, parent=self))

    def _footer(self) -> QVBoxLayout:
        muted = QPalette.ColorRole.PlaceholderText
        self._saved = ElidedLabel(parent=self, role=muted, mode=Qt.TextElideMode.ElideMiddle)
        self._saved.setFont(caption_font())
        self._start = self._button(self.tr("Start"), self.tr("Train with these settings (Ctrl+Return)."), "train_start")
        self._start.setDefault(True)
        self._stop = self._button(self.tr("Stop"), self.tr("End the training and save it."), "train_stop")
        self._open = self._button(self.tr("Open in Explore"), self.tr("Look at the trained model."), "train_open")
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACE_2)
        for button in (self._start, self._stop, self._open):
            buttons.addWidget(button, 1)
        footer = QVBoxLayout()
        footer.setContentsMargins(SPACE_3, SPACE_2, SPACE_3, SPACE_3)
        footer.setSpacing(SPACE_1)
        footer.addWidget(self._saved)
        footer.addLayout(buttons)
        return footer

    def _button(self, text: str, tooltip: str, command: str) -> QPushButton:
        button = QPushButton(text, self)
        button.setToolTip(tooltip)
        button.setProperty("command", command)
        button.clicked.connect(self._on_button_clicked)
        return button

    @Slot(object)
    def _on_editor_value_picked(self, value: Any) -> None:
        self.noticed.emit(set_draft(**{self.sender().property("field"): value}))

    @Slot(object)
    def _on_folder_value_picked(self, folder: Path) -> None:
        self.noticed.emit(set_runs_folder(folder))

    @Slot()
    def _on_button_clicked(self) -> None:
        self.command_requested.emit(self.sender().property("command"))


def _scrolling(form: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(form)
    form.setAutoFillBackground(False)
    area.viewport().setAutoFillBackground(False)
    return area
