"""The line at the bottom: where the picture comes from, what is running, what was said."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from explorer.state.app_state import AppState
from explorer.theme.fonts import caption_font
from explorer.theme.icons import icon
from explorer.theme.metrics import SPACE_3
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.progress_line import ProgressLine
from explorer.workers.lane import Running

_PROGRESS_WIDTH = 280


class StatusLine(QWidget):
    """Source of the picture on the left; progress with a way to stop, and messages, on the right."""

    command_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._source = ElidedLabel(parent=self)
        self._source.setFont(caption_font())
        self._progress = ProgressLine(self)
        self._progress.setFixedWidth(_PROGRESS_WIDTH)
        self._progress.cancel_requested.connect(self._on_progress_cancel_requested)
        self._is_running = False
        self._messages = QToolButton(self, autoRaise=True, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._messages.setFont(caption_font())
        self._messages.setToolTip(self.tr("What the program has said, with details."))
        self._messages.clicked.connect(self._on_messages_clicked)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(SPACE_3, 0, SPACE_3, 0)
        layout.setSpacing(SPACE_3)
        layout.addWidget(self._source, 1)
        layout.addWidget(self._progress)
        layout.addWidget(self._messages)

    def show_source(self, text: str) -> None:
        """Name the source of the picture on screen."""
        self._source.set_text(text)

    def show_state(self, state: AppState) -> None:
        notices = state.notices
        self._messages.setVisible(bool(notices))
        if notices:
            self._messages.setIcon(icon(notices[-1].severity))
            n = len(notices)
            self._messages.setText(self.tr("1 message") if n == 1 else self.tr("{n} messages").format(n=n))

    def show_running(self, running: Running | None) -> None:
        """What a lane is busy with, None when none is."""
        if running is None:
            if self._is_running:
                self._progress.finish()
            self._is_running = False
            return
        if not self._is_running:
            self._progress.start(running.query.doing)
            self._is_running = True
        self._progress.set_progress(running.fraction, running.query.doing)

    @Slot()
    def _on_progress_cancel_requested(self) -> None:
        self.command_requested.emit("stop")

    @Slot()
    def _on_messages_clicked(self) -> None:
        self.command_requested.emit("panel_messages")
