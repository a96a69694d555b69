"""Editors of a form: each shows one value and tells when the person has given another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QSizePolicy,
    QSpinBox,
    QToolButton,
    QWidget,
)

from explorer.theme.icons import icon
from explorer.theme.metrics import SPACE_1
from explorer.widgets.elided_label import ElidedLabel

_LARGEST_COUNT = 1_000_000_000
_LEAST_WIDTH = 72


class ChoiceEditor(QComboBox):
    """One of a few values, by their labels."""

    value_picked = Signal(object)

    def __init__(
        self,
        choices: Sequence[tuple[str, str]] = (),
        meanings: Mapping[str, str] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        """`choices` are (value, label); `meanings` say more about values, in tooltips."""
        super().__init__(parent)
        self._choices: tuple[tuple[str, str], ...] = ()
        self._meanings = meanings or {}
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumWidth(_LEAST_WIDTH)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.set_choices(choices)
        self.activated.connect(self._on_activated)

    def set_choices(self, choices: Sequence[tuple[str, str]]) -> None:
        """Offer these (value, label); the value shown stays if it is among them."""
        if tuple(choices) == self._choices:
            return
        self._choices = tuple(choices)
        shown = self.currentData()
        with QSignalBlocker(self):
            self.clear()
            for value, label in choices:
                self.addItem(label, value)
                self.setItemData(self.count() - 1, self._meanings.get(value, ""), Qt.ItemDataRole.ToolTipRole)
            self.setCurrentIndex(self.findData(shown))

    def set_value(self, value: Any) -> None:
        """Show a value; emits nothing."""
        self.setCurrentIndex(self.findData(value))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scrolling a form must not change it."""
        event.ignore()

    @Slot(int)
    def _on_activated(self, index: int) -> None:
        self.value_picked.emit(self.itemData(index))


class CountEditor(QSpinBox):
    """A whole number of at least 0."""

    value_picked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setRange(0, _LARGEST_COUNT)
        self.lineEdit().setTextMargins(SPACE_1, 0, 0, 0)  # a stylesheet's padding does not reach it
        self.setMinimumWidth(_LEAST_WIDTH)
        self.setStepType(QSpinBox.StepType.AdaptiveDecimalStepType)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.valueChanged.connect(self._on_value_changed)

    def set_value(self, value: Any) -> None:
        """Show a value; emits nothing."""
        if value != self.value():
            with QSignalBlocker(self):
                self.setValue(value)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scrolling a form must not change it."""
        event.ignore()

    @Slot(int)
    def _on_value_changed(self, value: int) -> None:
        self.value_picked.emit(value)


class NumberEditor(QLineEdit):
    """A number as people write it, 0.002 or 2e-3; None when empty, the text itself when it is no number."""

    value_picked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.textEdited.connect(self._on_text_edited)

    def set_value(self, value: Any) -> None:
        """Show a value, unless the text already means it; emits nothing."""
        if _number_of(self.text()) != value:
            self.setText("" if value is None else value if isinstance(value, str) else f"{value:g}")

    @Slot(str)
    def _on_text_edited(self, text: str) -> None:
        self.value_picked.emit(_number_of(text))


class PathEditor(QWidget):
    """A file or folder, chosen in the system's dialog."""

    value_picked = Signal(object)

    def __init__(self, kind: Literal["file", "folder"], title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kind, self._title = kind, title
        self._path: Path | None = None
        self._label = ElidedLabel(parent=self, mode=Qt.TextElideMode.ElideLeft)
        self._browse = QToolButton(self)
        self._browse.setIcon(icon("open"))
        self._browse.setToolTip(title)
        self._browse.setAccessibleName(title)
        self._browse.clicked.connect(self._on_browse_clicked)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_1)
        layout.addWidget(self._label, 1)
        layout.addWidget(self._browse)
        self.set_value(None)

    def set_value(self, value: Path | None) -> None:
        """Show a path; emits nothing."""
        self._path = value
        self._label.set_text(self.tr("none chosen") if value is None else str(value))

    @Slot()
    def _on_browse_clicked(self) -> None:
        start = str(self._path.parent if self._path and self._kind == "file" else self._path or Path.home())
        if self._kind == "folder":
            name = QFileDialog.getExistingDirectory(self, self._title, start)
        else:
            name, _ = QFileDialog.getOpenFileName(self, self._title, start, self.tr("Text (*.txt *.md);;All files (*)"))
        if name:
            self.value_picked.emit(Path(name))


def _number_of(text: str) -> float | str | None:
    """What a text means as a number."""
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        return text
