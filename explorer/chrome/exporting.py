"""Between the export dialog and the lanes: its questions become orders, what comes of them is told to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QWidget

from explorer.chrome.export_dialog import ExportDialog
from explorer.controller import Controller
from explorer.figures.export import ExportSource
from explorer.figures.queries import FigureQuery, PreviewQuery, TableQuery
from explorer.state.export import ExportChoices
from explorer.state.moves import set_export
from explorer.state.outcome import Problem
from explorer.state.store import Store

_PREVIEW, _WORK = "export.preview", "export.work"


class Exporter(QObject):
    """Opens the dialog over a window, one at a time."""

    def __init__(self, store: Store, controller: Controller, window: QWidget) -> None:
        super().__init__(window)
        self._store = store
        self._controller = controller
        self._window = window
        self._dialog: ExportDialog | None = None

    @property
    def dialog(self) -> ExportDialog | None:
        """The dialog on screen."""
        return self._dialog

    def open(self, source: ExportSource) -> None:
        """Offer what there is to export, with the choices of the last time."""
        if self._dialog is not None:
            self._dialog.activateWindow()
            return
        dialog = self._dialog = ExportDialog(source, self._store.state.export, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.preview_asked.connect(self._on_dialog_preview_asked)
        dialog.file_asked.connect(self._on_dialog_file_asked)
        dialog.text_asked.connect(self._on_dialog_text_asked)
        dialog.choices_changed.connect(self._on_dialog_choices_changed)
        dialog.stop_requested.connect(self._controller.cancel)
        dialog.finished.connect(self._on_dialog_finished)
        dialog.open()

    @Slot(object)
    def _on_dialog_preview_asked(self, query: PreviewQuery) -> None:
        if self._dialog:
            told = _Told(self._dialog.show_preview, self._dialog.show_preview_problem)
            self._controller.order(_PREVIEW, query, told)

    @Slot(object)
    def _on_dialog_file_asked(self, query: FigureQuery | TableQuery) -> None:
        if self._dialog:
            told = _Told(self._dialog.show_saved, self._dialog.show_problem, self._dialog.show_progress)
            self._controller.order(_WORK, query, told)

    @Slot(object)
    def _on_dialog_text_asked(self, query: TableQuery) -> None:
        if self._dialog:
            told = _Told(self._dialog.show_copied, self._dialog.show_problem, self._dialog.show_progress)
            self._controller.order(_WORK, query, told)

    @Slot(object)
    def _on_dialog_choices_changed(self, choices: ExportChoices) -> None:
        self._store.settle(set_export(choices))

    @Slot()
    def _on_dialog_finished(self) -> None:
        self._dialog = None
        for slot in (_PREVIEW, _WORK):
            self._controller.withdraw(slot)


@dataclass(frozen=True)
class _Told:
    """A controller.Recipient made of methods of the dialog."""

    on_result: Callable[[Any], None]
    on_problem: Callable[[Problem], None]
    on_progress: Callable[[float | None], None] | None = None

    def show_result(self, result: Any) -> None:
        self.on_result(result)

    def show_problem(self, problem: Problem) -> None:
        self.on_problem(problem)

    def show_progress(self, fraction: float | None) -> None:
        if self.on_progress:
            self.on_progress(fraction)
