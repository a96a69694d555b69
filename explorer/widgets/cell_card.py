"""A small card beside the mouse that reads out one cell."""

from PySide6.QtCore import QPoint, Qt, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from explorer.theme.fonts import body_font, caption_font, heading_font, token_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import RADIUS, SPACE_1, SPACE_2, SPACE_3, SPACE_4
from explorer.theme.token_text import token_text

_TOKEN_LIMIT = 24


class CellCard(QWidget):
    """Query and key in their colours, the weight below. It keeps clear of the pointer and inside its parent."""

    def __init__(self, themes: ThemeManager, parent: QWidget) -> None:
        super().__init__(parent)
        self._themes = themes
        self._room = parent
        self._query, self._key = self._token_row(0), self._token_row(1)
        self._weight, self._rank = QLabel(self), QLabel(self)
        self._weight.setFont(heading_font())
        self._rank.setFont(caption_font())
        layout = QGridLayout(self)
        layout.setContentsMargins(SPACE_3, SPACE_2, SPACE_3, SPACE_2)
        layout.setHorizontalSpacing(SPACE_2)
        layout.setVerticalSpacing(SPACE_1)
        for row, (name, token) in enumerate((self._query, self._key)):
            layout.addWidget(name, row, 0)
            layout.addWidget(token, row, 1)
        layout.addWidget(self._weight, 2, 0)
        layout.addWidget(self._rank, 2, 1, Qt.AlignmentFlag.AlignRight)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        themes.theme_changed.connect(self._on_themes_theme_changed)
        self._tint()
        self.hide()

    def show_cell(self, query: tuple[int, str], key: tuple[int, str], weight: str, rank: str, at: QPoint) -> None:
        """Read out a cell beside the point `at` of the parent. `query` and `key` are (index, token)."""
        for (name, token), word, (index, text) in (
            (self._query, self.tr("query"), query),
            (self._key, self.tr("key"), key),
        ):
            name.setText(f"{word} {index}")
            token.setText(token_text(text, _TOKEN_LIMIT) if text else "")
        self._weight.setText(weight)
        self._rank.setText(rank)
        self.adjustSize()
        area = self._room.rect()
        x = at.x() + SPACE_4 if at.x() + SPACE_4 + self.width() <= area.right() else at.x() - SPACE_4 - self.width()
        y = at.y() + SPACE_4 if at.y() + SPACE_4 + self.height() <= area.bottom() else at.y() - SPACE_4 - self.height()
        self.move(max(0, x), max(0, y))
        self.show()
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self._themes.theme.border)
        painter.setBrush(self.palette().color(QPalette.ColorRole.ToolTipBase))
        painter.drawRoundedRect(self.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5), RADIUS, RADIUS)
        painter.end()

    def _token_row(self, row: int) -> tuple[QLabel, QLabel]:
        name, token = QLabel(self), QLabel(self)
        name.setFont(body_font())
        token.setFont(token_font())
        return name, token

    def _tint(self) -> None:
        theme = self._themes.theme
        for (name, _), color in (
            (self._query, theme.query),
            (self._key, theme.key),
            ((self._rank, None), theme.text_muted),
        ):
            name.setForegroundRole(QPalette.ColorRole.WindowText)
            palette = name.palette()
            palette.setColor(QPalette.ColorRole.WindowText, color)
            name.setPalette(palette)

    @Slot(object)
    def _on_themes_theme_changed(self, theme: object) -> None:
        self._tint()
