"""Between the download dialog and the lanes: what it asks becomes orders."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QWidget

from explorer.actions.file_commands import download_errand
from explorer.chrome.download_dialog import DownloadDialog
from explorer.chrome.errands import Errands
from explorer.controller import Controller
from explorer.state.errands import OfferQuery

_SLOT = "download.offer"


class Downloader(QObject):
    """Opens the dialog over a window, one at a time."""

    def __init__(self, controller: Controller, errands: Errands, window: QWidget) -> None:
        super().__init__(window)
        self._controller = controller
        self._errands = errands
        self._window = window
        self._dialog: DownloadDialog | None = None

    def open(self) -> None:
        """Ask what to download."""
        if self._dialog is not None:
            self._dialog.activateWindow()
            return
        dialog = self._dialog = DownloadDialog(self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.offer_asked.connect(self._on_dialog_offer_asked)
        dialog.download_asked.connect(self._on_dialog_download_asked)
        dialog.finished.connect(self._on_dialog_finished)
        dialog.open()

    @Slot(str, str)
    def _on_dialog_offer_asked(self, repository: str, revision: str) -> None:
        if self._dialog is not None:
            query = OfferQuery(repository=repository, revision=revision)
            self._controller.order(_SLOT, query, self._dialog)

    @Slot(str, str)
    def _on_dialog_download_asked(self, repository: str, revision: str) -> None:
        self._errands.run(download_errand(repository, revision))

    @Slot()
    def _on_dialog_finished(self) -> None:
        self._dialog = None
        self._controller.withdraw(_SLOT)
