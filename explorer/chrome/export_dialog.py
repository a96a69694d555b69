"""The export: the figure as it will be beside the choices that make it. It asks by signals and is told by methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication, QPixmap
from PySide6.QtWidgets import QDialog, QFileDialog, QHBoxLayout, QMessageBox, QPushButton, QVBoxLayout, QWidget

from core_model.errors import CoreError
from explorer.chrome.export_form import ExportForm
from explorer.figures.export import CLIPBOARD_CELLS, ExportSource
from explorer.figures.files import DATA_FORMATS, FORMATS
from explorer.figures.queries import Preview, PreviewQuery
from explorer.state.export import ExportChoices
from explorer.state.outcome import Problem
from explorer.theme.metrics import SPACE_2, SPACE_3, SPACE_4
from explorer.widgets.paper import Paper
from explorer.widgets.progress_line import ProgressLine
from explorer.widgets.remark import Remark

_FIRST_SIZE = 960, 620
_SETTLE_MS = 150
"""Choices that follow each other faster make one preview."""


class ExportDialog(QDialog):
    """Preview at the left, choices at the right, what can be done with them below. It stays open after saving."""

    preview_asked = Signal(object)
    """A PreviewQuery; answer with show_preview or show_preview_problem."""
    file_asked = Signal(object)
    """A FigureQuery or TableQuery; answer with show_saved or show_problem."""
    text_asked = Signal(object)
    """A TableQuery without a path; answer with show_copied or show_problem."""
    stop_requested = Signal()
    choices_changed = Signal(object)
    """The ExportChoices to remember."""

    def __init__(self, source: ExportSource, choices: ExportChoices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._source = source
        self._choices = choices if not source.on_screen.is_whole else replace(choices, whole=True)
        self._folder = Path.home()
        self.setWindowTitle(self.tr("Export"))
        self.resize(*_FIRST_SIZE)
        self._paper = Paper(self)
        self._form = ExportForm(source, self._choices, self)
        self._remark = Remark(self)
        self._progress = ProgressLine(self)
        self._copy_image = self._button(self.tr("Copy image"), self._on_copy_image)
        self._copy_csv = self._button(self.tr("Copy CSV"), self._on_copy_csv)
        self._save = self._button(self.tr("Save…"), self._on_save)
        self._save.setDefault(True)
        self._timer = QTimer(self, interval=_SETTLE_MS, singleShot=True)
        self._timer.timeout.connect(self._on_timer_timeout)
        self._form.changed.connect(self._on_form_changed)
        self._progress.cancel_requested.connect(self.stop_requested)
        self._arrange()
        self._show_choices()

    def _button(self, title: str, act: Callable[[], object]) -> QPushButton:
        button = QPushButton(title, self, autoDefault=False)
        button.clicked.connect(act)
        return button

    def _arrange(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(SPACE_4)
        top.addWidget(self._paper, 1)
        side = QVBoxLayout()
        side.setSpacing(SPACE_2)
        side.addWidget(self._form)
        side.addStretch(1)
        side.addWidget(self._remark)
        top.addLayout(side)
        close = self._button(self.tr("Close"), self.close)
        bottom = QHBoxLayout()
        bottom.setSpacing(SPACE_2)
        for widget in (self._copy_image, self._copy_csv):
            bottom.addWidget(widget)
        bottom.addWidget(self._progress, 1)
        bottom.addWidget(close)
        bottom.addWidget(self._save)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_4, SPACE_4, SPACE_4, SPACE_3)
        layout.setSpacing(SPACE_4)
        layout.addLayout(top, 1)
        layout.addLayout(bottom)
        self._copy_image.setToolTip(self.tr("Put the figure on the clipboard as a picture, at the resolution chosen."))
        self._save.setToolTip(self.tr("Choose a name and write the file."))

    # -- what it is told -----------------------------------------------------------------------------------------------

    @property
    def choices(self) -> ExportChoices:
        """What is chosen now."""
        return self._choices

    def show_preview(self, preview: Preview) -> None:
        """The figure as it will be."""
        pixmap = QPixmap()
        pixmap.loadFromData(preview.png, "PNG")
        self._paper.show_pixmap(pixmap)
        self._copy_image.setEnabled(True)
        if preview.unprintable:
            text = self.tr("No installed font has {characters}: the figure spells their codes.")
            self._remark.say("warning", text.format(characters=" ".join(preview.unprintable)))
        else:
            self._remark.clear()

    def show_preview_problem(self, problem: Problem) -> None:
        """Why these choices make no figure."""
        self._paper.show_text(problem.message)
        self._copy_image.setEnabled(False)

    def show_progress(self, fraction: float | None) -> None:
        """How far the writing is."""
        self._progress.set_progress(fraction)

    def show_saved(self, path: Path) -> None:
        """The file is there."""
        self._finish("ok", self.tr("Saved {path}").format(path=path))

    def show_copied(self, text: str) -> None:
        """The CSV is here."""
        QGuiApplication.clipboard().setText(text)
        self._finish("ok", self.tr("The numbers are on the clipboard."))

    def show_problem(self, problem: Problem) -> None:
        """Why the file was not written."""
        self._finish("neutral" if problem.is_cancelled else "error", problem.message)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _show_choices(self) -> None:
        self._form.show_choices(self._choices)
        self._copy_csv.setEnabled(self._fits_clipboard)
        self._copy_csv.setToolTip(
            self.tr("Put the exact weights on the clipboard, as a spreadsheet reads them.")
            if self._fits_clipboard
            else self.tr("More than a million cells: save them as CSV or NPZ instead.")
        )
        if self._choices.format in DATA_FORMATS:
            self._timer.stop()
            self._paper.show_text(self._source.glimpse(self._choices), is_code=True)
        else:
            self._timer.start()
            if self._paper.pixmap.isNull():
                self._paper.show_text(self.tr("Drawing the figure"))
        self._copy_image.setEnabled(False)  # until the figure of these choices is there

    @property
    def _fits_clipboard(self) -> bool:
        return self._source.n_cells(self._choices) <= CLIPBOARD_CELLS

    def _begin(self, text: str) -> None:
        self._remark.clear()
        self._set_busy(True)
        self._progress.start(text)

    def _finish(self, kind: str, text: str) -> None:
        self._progress.finish()
        self._set_busy(False)
        self._remark.say(kind, text)

    def _set_busy(self, is_busy: bool) -> None:
        self._save.setEnabled(not is_busy)
        self._copy_csv.setEnabled(not is_busy and self._fits_clipboard)

    def _ask_for_path(self) -> Path | None:
        """A name with the ending of a known format: the chosen one's where the person gave none, nor one of letters.

        None where there is a file of the completed name, of which the file dialog knew nothing, that is to stay.
        """
        formats = (self._choices.format, *(name for name in FORMATS if name != self._choices.format))
        kinds = ";;".join(f"{name.upper()} (*.{name})" for name in formats)
        first = str(self._folder / self._source.file_name(self._choices))
        name, _ = QFileDialog.getSaveFileName(self, self.tr("Save the figure"), first, kinds)
        if not name:
            return None
        given = Path(name)
        self._folder = given.parent
        has_ending = given.suffix.removeprefix(".").isalpha()
        path = given if has_ending else given.with_name(f"{given.name}.{self._choices.format}")
        return path if path == given or not path.exists() or self._may_replace(path) else None

    def _may_replace(self, path: Path) -> bool:
        text = self.tr("{name} is there already. Replace it?").format(name=path.name)
        yes = QMessageBox.StandardButton.Yes
        return QMessageBox.question(self, self.tr("Save the figure"), text) == yes

    @Slot(object)
    def _on_form_changed(self, changes: dict[str, Any]) -> None:
        self._choices = replace(self._choices, **changes)
        self.choices_changed.emit(self._choices)
        self._show_choices()

    @Slot()
    def _on_timer_timeout(self) -> None:
        try:
            query = PreviewQuery(spec=self._source.spec(self._choices), format=self._choices.format)
        except CoreError as error:
            self.show_preview_problem(Problem(what=PreviewQuery.failed, message=str(error)))
            return
        self.preview_asked.emit(query)

    @Slot()
    def _on_copy_image(self) -> None:
        QGuiApplication.clipboard().setPixmap(self._paper.pixmap)
        self._remark.say("ok", self.tr("The figure is on the clipboard."))

    @Slot()
    def _on_copy_csv(self) -> None:
        self._begin(self.tr("Computing"))
        self.text_asked.emit(self._source.table_query(self._choices, None))

    @Slot()
    def _on_save(self) -> None:
        if (path := self._ask_for_path()) is None:
            return
        try:
            query = self._source.query(self._choices, path)
        except CoreError as error:
            self._remark.say("error", str(error))
            return
        self._begin(self.tr("Writing"))
        self.file_asked.emit(query)
