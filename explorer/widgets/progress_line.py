"""Progress of one piece of work: a thin bar, a few words, and a way to cancel."""

from PySide6.QtCore import QRectF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QPalette, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QWidget

from explorer.theme.icons import icon
from explorer.theme.metrics import PATIENCE_MS, SPACE_2
from explorer.widgets.elided_label import ElidedLabel

_THICKNESS = 3
_STEP_MS = 40
_STEP = 0.02
_PIECE = 0.25
"""Share of the track that moves while no end is known."""


class ProgressTrack(QWidget):
    """A bar of 3 px; a moving piece while the fraction is None."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fraction: float | None = 0.0
        self._phase = 0.0
        self._timer = QTimer(self)
        self._timer.setInterval(_STEP_MS)
        self._timer.timeout.connect(self._on_timer_timeout)
        self.setFixedHeight(_THICKNESS)
        self.setMinimumWidth(80)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_fraction(self, fraction: float | None) -> None:
        self._fraction = None if fraction is None else min(1.0, max(0.0, fraction))
        self._run_timer()
        self.update()

    def showEvent(self, event: QShowEvent) -> None:
        self._run_timer()

    def hideEvent(self, event: QHideEvent) -> None:
        self._timer.stop()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.palette().color(QPalette.ColorRole.Mid))
        painter.drawRoundedRect(self.rect(), _THICKNESS / 2, _THICKNESS / 2)
        painter.setBrush(self.palette().color(QPalette.ColorRole.Accent))
        start, length = (0.0, self._fraction) if self._fraction is not None else (self._phase, _PIECE)
        bar = QRectF(start * self.width(), 0, length * self.width(), _THICKNESS)
        painter.drawRoundedRect(bar, _THICKNESS / 2, _THICKNESS / 2)
        painter.end()

    def _run_timer(self) -> None:
        if self._fraction is None and self.isVisible():
            self._timer.start()
        else:
            self._timer.stop()

    @Slot()
    def _on_timer_timeout(self) -> None:
        self._phase = (self._phase + _STEP) % (1.0 + _PIECE)
        self.update()


class ProgressLine(QWidget):
    """Its room is reserved; it shows 0.3 s after `start`, so that quick work does not flicker."""

    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        policy = self.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.setSizePolicy(policy)
        self._words = ElidedLabel(parent=self, role=QPalette.ColorRole.PlaceholderText)
        self._track = ProgressTrack(self)
        self._cancel = QToolButton(self)
        self._cancel.setIcon(icon("close"))
        self._cancel.setIconSize(QSize(12, 12))
        self._cancel.setAutoRaise(True)
        self._cancel.setToolTip(self.tr("Stop this work."))
        self._cancel.setAccessibleName(self.tr("Cancel"))
        self._cancel.clicked.connect(self.cancel_requested)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_2)
        layout.addWidget(self._words, 1)
        layout.addWidget(self._track, 1)
        layout.addWidget(self._cancel)
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(PATIENCE_MS)
        self._patience.timeout.connect(self.show)
        self.hide()

    def start(self, text: str) -> None:
        self.set_progress(None, text)
        if self.isHidden():
            self._patience.start()

    def set_progress(self, fraction: float | None, text: str = "") -> None:
        """`fraction` from 0 to 1; None: no end is known. An empty text keeps the words on screen."""
        self._track.set_fraction(fraction)
        if text:
            self._words.set_text(text)
            self.setAccessibleName(text)

    def finish(self) -> None:
        self._patience.stop()
        self.hide()
