"""The picture or the sound that a model is given: which file, and the way to another."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QToolButton, QWidget

from explorer.state.given_file import FileKind, GivenFile
from explorer.theme.icons import icon

_LONGEST_NAME = 104
"""Pixels of a file's name before it is cut: the text needs the room."""


class FileField(QWidget):
    """A button that asks for a file and bears the name of the one that is given; a second one takes that away."""

    asked = Signal(str)
    """With its kind; `cleared` too."""
    cleared = Signal(str)

    def __init__(self, kind: FileKind, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kind = kind
        self._file: GivenFile | None = None
        self._notes: tuple[str, ...] = ()
        self._button = QPushButton(icon(kind), "", self)
        self._button.clicked.connect(self._on_button_clicked)
        self._clear = QToolButton(self, autoRaise=True)
        self._clear.setIcon(icon("close"))
        self._clear.setToolTip(self._words()[2])
        self._clear.clicked.connect(self._on_clear_clicked)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._button)
        layout.addWidget(self._clear)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._show()

    @property
    def text(self) -> str:
        """What stands on the button."""
        return self._button.text()

    def take_focus(self) -> None:
        self._button.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def set_file(self, file: GivenFile | None, notes: Sequence[str] = ()) -> None:
        """Show which file is given, None where none is, and what was done to it so that the model can read it."""
        if (file, tuple(notes)) != (self._file, self._notes):
            self._file, self._notes = file, tuple(notes)
            self._show()

    def _show(self) -> None:
        invitation, about, _ = self._words()
        name = invitation if self._file is None else self._file.name
        self._button.setText(self.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, _LONGEST_NAME))
        self._button.setToolTip(about if self._file is None else "\n".join((str(self._file.path), *self._notes, about)))
        self._clear.setVisible(self._file is not None)

    def _words(self) -> tuple[str, str, str]:
        """The invitation, what the button does, and what the one beside it does."""
        if self._kind == "picture":
            return (
                self.tr("Open a picture…"),
                self.tr("Choose the picture that the model reads, or drop one on the window."),
                self.tr("Take the picture away."),
            )
        return (
            self.tr("Open a sound…"),
            self.tr("Choose the sound that the model reads, or drop a WAV file on the window."),
            self.tr("Take the sound away."),
        )

    @Slot()
    def _on_button_clicked(self) -> None:
        self.asked.emit(self._kind)

    @Slot()
    def _on_clear_clicked(self) -> None:
        self._button.setFocus(Qt.FocusReason.OtherFocusReason)  # not to the next field, once this button is gone
        self.cleared.emit(self._kind)
