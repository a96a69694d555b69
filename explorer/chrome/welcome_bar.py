"""The line of the first minute: what the sample shows, and where to go from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QToolButton, QWidget

from explorer.samples import Sample
from explorer.state.app_state import AppState
from explorer.theme.icons import icon
from explorer.theme.metrics import SPACE_1, SPACE_2
from explorer.widgets.elided_label import ElidedLabel


class WelcomeBar(QWidget):
    """Shown beside the pictures of a sample, until it is closed."""

    def __init__(
        self, samples: Sequence[Sample], actions: Mapping[str, QAction], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._samples = tuple(samples)
        self._is_closed = False
        self._line = ElidedLabel(parent=self, mode=Qt.TextElideMode.ElideRight)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(SPACE_1, 0, 0, 0)
        layout.setSpacing(SPACE_2)
        layout.addWidget(self._line, 1)
        for words, action in actions.items():
            button = QPushButton(action.icon(), words, self)
            button.setToolTip(action.toolTip())
            button.clicked.connect(action.trigger)
            layout.addWidget(button)
        close = QToolButton(self, autoRaise=True)
        close.setIcon(icon("close"))
        close.setToolTip(self.tr("Close this line."))
        close.setAccessibleName(self.tr("Close"))
        close.clicked.connect(self._on_close_clicked)
        layout.addWidget(close)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.hide()

    @property
    def line(self) -> str:
        """What it says; empty while it is not shown."""
        return "" if self.isHidden() else self._line.text()

    def show_state(self, state: AppState) -> None:
        path = state.source.path if state.source else None
        known = [sample for sample in self._samples if sample.path == path]
        shown = [sample for sample in known if sample.is_shown(state)]
        if known:
            heads = self.tr("Known in this sample: {heads}.").format(heads=", ".join(one.head_name for one in known))
            self._line.set_text(shown[0].line if shown else heads)
        self.setVisible(bool(known) and state.layout == "explore" and not self._is_closed)

    @Slot()
    def _on_close_clicked(self) -> None:
        self._is_closed = True
        self.hide()
