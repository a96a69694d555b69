"""A panel's content in its four states: empty, working, ready, error."""

from __future__ import annotations

from functools import cached_property

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from explorer.theme.fonts import heading_font
from explorer.theme.icons import icon
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import PATIENCE_MS, SPACE_2, SPACE_3, SPACE_6
from explorer.widgets.disclosure import Disclosure
from explorer.widgets.progress_line import ProgressTrack

_COLUMN = 400
"""Widest line of text."""
_ICON = 24
_ABOVE, _BELOW = 2, 3
"""Shares of the room that is left: a little above the centre."""


class StatePage(QStackedWidget):
    """Starts empty and silent. While a ready picture is renewed, leave it on screen and call the plot's `set_stale`.

    The pages of the other states are made when they are first shown: most panels never need them.
    """

    action_triggered = Signal()
    """The button of the empty or error page."""
    cancel_requested = Signal()

    def __init__(self, themes: ThemeManager, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._content = content
        self._blank = QWidget(self)
        self._progress: tuple[str, float | None] = "", None
        for page in (self._blank, content):
            self.addWidget(page)
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(PATIENCE_MS)
        self._patience.timeout.connect(self._on_patience_timeout)

    def show_content(self) -> None:
        self._turn_to(self._content)

    def show_empty(self, text: str, action: str = "", *, tip: str = "", is_enabled: bool = True) -> None:
        """What to do, with a button where `action` names one; `tip` explains it, `is_enabled` if it can be done now."""
        if not text and not action:
            self._turn_to(self._blank)
            return
        self._notice.set_texts(what="", why=text, action=action, tip=tip)
        self._notice.button.setEnabled(is_enabled)
        self._turn_to(self._notice_page)

    def show_working(self, text: str) -> None:
        """First work, with nothing older to show; appears after 0.3 s."""
        self._progress = text, None
        if self._is_working:
            self._tell_progress()
        else:
            self._patience.start()

    def show_progress(self, fraction: float | None, text: str = "") -> None:
        """Move the progress of the working page; None: no end is known."""
        self._progress = text or self._progress[0], fraction
        if self._is_working:
            self._tell_progress()

    def show_error(
        self, what: str, why: str = "", next_step: str = "", details: str = "", action: str = "", *, tip: str = ""
    ) -> None:
        """`what` in one sentence; `details` are shown on demand."""
        self._notice.set_texts(what=what, why=why, next_step=next_step, details=details, action=action, tip=tip)
        self._notice.button.setEnabled(True)
        self._turn_to(self._notice_page)

    @cached_property
    def _notice(self) -> _Notice:
        notice = _Notice(self._themes, self)
        notice.button.clicked.connect(self.action_triggered)
        return notice

    @cached_property
    def _notice_page(self) -> QScrollArea:
        page = _scrolling(self._notice, self)
        self.addWidget(page)
        return page

    @cached_property
    def _working(self) -> _Working:
        working = _Working(self)
        working.button.clicked.connect(self.cancel_requested)
        self.addWidget(working)
        return working

    @property
    def _is_working(self) -> bool:
        return isinstance(self.currentWidget(), _Working)

    def _tell_progress(self) -> None:
        text, fraction = self._progress
        self._working.words.setText(text)
        self._working.track.set_fraction(fraction)

    def _turn_to(self, page: QWidget) -> None:
        self._patience.stop()
        self.setCurrentWidget(page)

    @Slot()
    def _on_patience_timeout(self) -> None:
        self._tell_progress()
        self.setCurrentWidget(self._working)
        if self._working.button.hasFocus():
            self._working.setFocus()  # the key pressed next was not meant to cancel


class _Notice(QWidget):
    """The empty and the error page: an icon for an error, sentences, a button, details."""

    def __init__(self, themes: ThemeManager, parent: QWidget) -> None:
        super().__init__(parent)
        self._themes = themes
        self._icon = QLabel(self)
        self._what = _paragraph(self)
        self._what.setFont(heading_font())
        self._why = _paragraph(self)
        self._why.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._next_step = _paragraph(self)
        self.button = QPushButton(self)
        self._details = Disclosure(self)
        self._column = column = _column(self)
        for widget in (self._icon, self._what, self._why, self._next_step):
            column.addWidget(widget)
        column.addSpacing(SPACE_2)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._details)
        column.addStretch(_BELOW)
        themes.theme_changed.connect(self._on_theme_changed)

    def set_texts(
        self, *, what: str, why: str, next_step: str = "", details: str = "", action: str = "", tip: str = ""
    ) -> None:
        for label, text in ((self._what, what), (self._why, why), (self._next_step, next_step)):
            label.setText(text)
            label.setVisible(bool(text))
        self.button.setText(action)
        self.button.setToolTip(tip)
        self.button.setVisible(bool(action))
        self._details.set_text(details)
        self._icon.setVisible(bool(what))
        is_remark = not what and not action
        self._column.setStretch(0, 0 if is_remark else _ABOVE)  # a mere remark stands where the content would begin
        margin = SPACE_3 if is_remark else SPACE_6
        self.setContentsMargins(margin, margin, margin, margin)
        self.setAccessibleName(" ".join(text for text in (what, why, next_step) if text))
        self._on_theme_changed()

    @Slot()
    def _on_theme_changed(self) -> None:
        tinted = icon("error", self._themes.theme.error)
        self._icon.setPixmap(tinted.pixmap(QSize(_ICON, _ICON), self.devicePixelRatioF()))


class _Working(QWidget):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.words = _paragraph(self)
        self.words.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.track = ProgressTrack(self)
        self.button = QPushButton(self.tr("Cancel"), self)
        self.button.setToolTip(self.tr("Stop this work."))
        self.setContentsMargins(SPACE_6, SPACE_6, SPACE_6, SPACE_6)
        column = _column(self)
        column.addWidget(self.words)
        column.addWidget(self.track)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(_BELOW)


def _paragraph(parent: QWidget) -> QLabel:
    label = QLabel(parent)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def _scrolling(page: QWidget, parent: QWidget) -> QScrollArea:
    """Details may be taller than a small panel."""
    area = QScrollArea(parent)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(page)
    page.setAutoFillBackground(False)
    area.viewport().setAutoFillBackground(False)
    return area


def _column(page: QWidget) -> QVBoxLayout:
    """A column of readable width in the middle, a little above the centre."""
    inner = QWidget(page)
    inner.setMaximumWidth(_COLUMN)
    column = QVBoxLayout(inner)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(SPACE_3)
    column.addStretch(_ABOVE)
    outer = QHBoxLayout(page)
    outer.setContentsMargins(0, 0, 0, 0)
    outer.addStretch(1)
    outer.addWidget(inner, _COLUMN)  # takes all there is, up to its greatest width
    outer.addStretch(1)
    return column
