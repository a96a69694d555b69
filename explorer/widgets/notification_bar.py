"""Messages above the work, newest first, with details behind a disclosure."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QToolButton, QWidget

from explorer.theme.fonts import caption_font
from explorer.theme.icons import icon
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import ICON, SPACE_1, SPACE_2, SPACE_3
from explorer.widgets.disclosure import Disclosure

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True, kw_only=True)
class Message:
    level: Level
    text: str
    details: str
    opens: Path | None = None


class NotificationBar(QWidget):
    """Takes no room while it has nothing to say."""

    count_changed = Signal(int)
    open_requested = Signal(object)
    """The path that the message on screen offers to open."""

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._messages: list[Message] = []
        self._icon = QLabel(self)
        self._text = QLabel(self)
        self._text.setWordWrap(True)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._others = QLabel(self)
        self._others.setFont(caption_font())
        self._others.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._open = QPushButton(self.tr("Open it"), self)
        self._open.clicked.connect(self._on_open_clicked)
        self._close = QToolButton(self)
        self._close.setIcon(icon("close"))
        self._close.setIconSize(QSize(12, 12))
        self._close.setAutoRaise(True)
        self._close.setToolTip(self.tr("Dismiss this message."))
        self._close.setAccessibleName(self.tr("Dismiss"))
        self._close.clicked.connect(self.dismiss)
        self._details = Disclosure(self)
        layout = QGridLayout(self)
        layout.setContentsMargins(SPACE_3, SPACE_1, SPACE_2, SPACE_1)
        layout.setHorizontalSpacing(SPACE_2)
        layout.setVerticalSpacing(0)
        layout.addWidget(self._icon, 0, 0)
        layout.addWidget(self._text, 0, 1)
        layout.addWidget(self._others, 0, 2)
        layout.addWidget(self._open, 0, 3)
        layout.addWidget(self._close, 0, 4)
        layout.addWidget(self._details, 1, 1, 1, 4)
        layout.setColumnStretch(1, 1)
        themes.theme_changed.connect(self._on_theme_changed)
        self._show_newest()

    @property
    def messages(self) -> tuple[Message, ...]:
        """Not yet dismissed, oldest first."""
        return tuple(self._messages)

    def show_message(self, level: Level, text: str, details: str = "", opens: Path | None = None) -> None:
        """`details` may be a traceback, `opens` is offered. A message that is waiting already is not shown twice."""
        message = Message(level=level, text=text, details=details, opens=opens)
        if message in self._messages:
            self._messages.remove(message)
        self._messages.append(message)
        self._show_newest()

    @Slot()
    def dismiss(self) -> None:
        """Remove the message on screen; the one before it returns."""
        if self._messages:
            self._messages.pop()
            self._show_newest()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = self._themes.theme
        tints = {"info": theme.hover, "warning": theme.warning_tint, "error": theme.error_tint}
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(tints[self._messages[-1].level] if self._messages else theme.window))
        painter.fillRect(0, self.height() - 1, self.width(), 1, QColor(theme.border))
        painter.end()

    def _show_newest(self) -> None:
        self.setVisible(bool(self._messages))
        self.count_changed.emit(len(self._messages))
        if not self._messages:
            return
        message = self._messages[-1]
        self._text.setText(message.text)
        self.setAccessibleName(f"{message.level}: {message.text}")
        n_others = len(self._messages) - 1
        self._others.setText(self.tr("{n} earlier").format(n=n_others) if n_others else "")
        self._open.setVisible(message.opens is not None)
        self._open.setToolTip(self.tr("Open {path}.").format(path=message.opens) if message.opens else "")
        self._details.set_text(message.details)
        self._show_icon(message)
        self.update()

    def _show_icon(self, message: Message) -> None:
        theme = self._themes.theme
        colors = {"info": theme.text_muted, "warning": theme.warning, "error": theme.error}
        pixmap = icon(message.level, colors[message.level]).pixmap(QSize(ICON, ICON), self.devicePixelRatioF())
        self._icon.setPixmap(pixmap)
        self._icon.setToolTip(message.level)

    @Slot()
    def _on_open_clicked(self) -> None:
        path = self._messages[-1].opens
        self.dismiss()
        self.open_requested.emit(path)

    @Slot()
    def _on_theme_changed(self) -> None:
        if self._messages:
            self._show_icon(self._messages[-1])
        self.update()
