"""The line of the first minute: what the sample shows, and where to go from here."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QWidget

from explorer.samples import Sample
from explorer.state.app_state import AppState
from explorer.theme.icons import icon
from explorer.theme.metrics import SPACE_2, SPACE_3
from explorer.widgets.elided_label import ElidedLabel


class WelcomeBar(QWidget):
    """Shown while a sample is open, until it is closed."""

    closed = Signal()

    def __init__(self, samples: Sequence[Sample], actions: Sequence[QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._samples = tuple(samples)
        self._is_closed = False
        self._line = ElidedLabel(parent=self, mode=Qt.TextElideMode.ElideRight)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(SPACE_3, SPACE_2, SPACE_3, SPACE_2)
        layout.setSpacing(SPACE_2)
        layout.addWidget(self._line, 1)
        for action in actions:
            button = QToolButton(self, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            button.setDefaultAction(action)
            layout.addWidget(button)
        close = QToolButton(self, autoRaise=True)
        close.setIcon(icon("close"))
        close.setToolTip(self.tr("Close this line."))
        close.clicked.connect(self._on_close_clicked)
        layout.addWidget(close)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.hide()

    def show_state(self, state: AppState) -> None:
        path = state.source.path if state.source else None
        sample = next((sample for sample in self._samples if sample.path == path), None)
        if sample:
            chosen = state.selection
            is_there = (chosen.site, chosen.layer, chosen.head) == (sample.site, sample.layer, sample.head)
            self._line.set_text(sample.line if is_there else sample.title)
        self.setVisible(sample is not None and not self._is_closed)

    @Slot()
    def _on_close_clicked(self) -> None:
        self._is_closed = True
        self.hide()
        self.closed.emit()
