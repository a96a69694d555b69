"""What to download from the Hugging Face Hub: a repository and a revision."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QLineEdit, QVBoxLayout, QWidget

from core_model.checkpoint.hub_cache import cache_folder, is_repository
from core_model.checkpoint.hub_offer import Offer
from explorer.state.outcome import Problem
from explorer.theme.metrics import SPACE_3, SPACE_4
from explorer.widgets.field_row import FieldRow

_WIDTH = 480


class DownloadDialog(QDialog):
    """Asks, and closes; what is asked for is fetched beside everything else.

    It is the controller.Recipient of `offer_asked`: how much would be fetched, or why nothing can be.
    """

    offer_asked = Signal(str, str)
    download_asked = Signal(str, str)
    """Both with the repository and the revision."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Download from the Hugging Face Hub"))
        self.setMinimumWidth(_WIDTH)
        self._repository = QLineEdit(self, placeholderText="openai-community/gpt2")
        self._revision = QLineEdit("main", self)
        self._row = FieldRow(
            self.tr("Repository"),
            self._repository,
            tooltip=self.tr("Owner and name of the model, as its page on the Hub has them."),
            parent=self,
        )
        revision = FieldRow(
            self.tr("Revision"), self._revision, tooltip=self.tr("A branch, a tag or a commit."), parent=self
        )
        text = self.tr(
            "Safetensors, config and tokenizer files are fetched into {folder}; nothing else, and no code. "
            "What was stopped before goes on where it ended. For a private model, log in once with `hf auth login`."
        )
        words = QLabel(text.format(folder=cache_folder()), self, wordWrap=True)
        words.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self._look_up = buttons.addButton(self.tr("Look up"), QDialogButtonBox.ButtonRole.ActionRole)
        self._look_up.setToolTip(self.tr("Ask the Hub how large the model is, and fetch nothing."))
        self._told = QLabel(self, wordWrap=True)
        self._download = buttons.addButton(self.tr("Download"), QDialogButtonBox.ButtonRole.AcceptRole)
        self._download.setToolTip(self.tr("Connect to the Hub and fetch the model."))
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE_4, SPACE_4, SPACE_4, SPACE_4)
        column.setSpacing(SPACE_3)
        for widget in (self._row, revision, words, self._told, buttons):
            column.addWidget(widget)
        for field in (self._repository, self._revision):
            field.textChanged.connect(self._on_field_text_changed)
        self._look_up.clicked.connect(self._on_look_up_clicked)
        buttons.accepted.connect(self._on_buttons_accepted)
        buttons.rejected.connect(self.reject)
        self._on_field_text_changed()

    @property
    def told(self) -> str:
        """What the Hub answered."""
        return self._told.text()

    def show_progress(self, fraction: float | None) -> None:
        """The status line shows it."""

    def show_result(self, result: Offer) -> None:
        """How much would be fetched."""
        self._told.setText(self.tr("{offer}.").format(offer=result.told))

    def show_problem(self, problem: Problem) -> None:
        """Why nothing can be; nothing is said of what the person stopped."""
        self._told.setText("" if problem.is_cancelled else f"\u26a0 {problem.message}")

    @Slot()
    def _on_field_text_changed(self) -> None:
        name = self._repository.text().strip()
        is_name = is_repository(name)
        self._row.set_error("" if is_name or not name else self.tr("A name looks like openai-community/gpt2."))
        self._told.clear()
        for button in (self._look_up, self._download):
            button.setEnabled(is_name and bool(self._revision.text().strip()))

    @Slot()
    def _on_look_up_clicked(self) -> None:
        self._told.setText(self.tr("Asking the Hub…"))
        self.offer_asked.emit(*self._asked())

    @Slot()
    def _on_buttons_accepted(self) -> None:
        self.download_asked.emit(*self._asked())
        self.accept()

    def _asked(self) -> tuple[str, str]:
        return self._repository.text().strip(), self._revision.text().strip()
