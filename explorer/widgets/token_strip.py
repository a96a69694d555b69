"""The tokens of a text as chips, in lines that wrap or in one row that scrolls."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from explorer.theme.colors import Theme
from explorer.theme.focus import draw_focus_ring
from explorer.theme.fonts import caption_font, token_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import RADIUS, SPACE_1, SPACE_2
from explorer.theme.token_paint import draw_token, token_width
from explorer.theme.token_text import token_text
from explorer.widgets.token_layout import GAP, TokenLayout, lay_out

_LONGEST = 32
"""Characters of a token before it is cut."""
_MOST_LINES_HINT = 3


class TokenStrip(QAbstractScrollArea):
    """One painted widget for any number of tokens; below each chip stands its index."""

    token_hovered = Signal(int)
    hover_left = Signal()
    token_clicked = Signal(int)

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None, *, wraps: bool = True) -> None:
        super().__init__(parent)
        self._themes = themes
        self._wraps = wraps
        self._tokens: tuple[str, ...] = ()
        self._widths: list[float] = []
        self._layout: TokenLayout = lay_out((), None, ())
        self._marks: dict[int, tuple[str, str]] = {}
        self._hovered: int | None = None
        self._font, self._small_font = token_font(), caption_font()
        self._metrics, self._small_metrics = QFontMetricsF(self._font), QFontMetricsF(self._small_font)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAlwaysOff if wraps else Qt.ScrollBarPolicy.ScrollBarAsNeeded
        )
        self.viewport().setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(self.tr("Tokens"))
        themes.theme_changed.connect(self._on_theme_changed)

    def set_tokens(self, tokens: Sequence[str]) -> None:
        """Show tokens as decoded, their spaces included; marks are cleared."""
        self._tokens = tuple(tokens)
        self._marks = {}
        self._hovered = None
        known: dict[str, float] = {}
        for token in set(self._tokens):
            known[token] = token_width(self._metrics, token, _LONGEST) + 2 * SPACE_2
        index_width = self._small_metrics.horizontalAdvance("0")
        self._widths = [
            max(known[token], index_width * (len(str(index)) + 1)) for index, token in enumerate(self._tokens)
        ]
        self.setAccessibleDescription(self.tr("tokens: {n}").format(n=len(self._tokens)))
        self._lay_out()

    def set_marked(self, *, query: int | None = None, key: int | None = None) -> None:
        """Colour the query's and the key's chip, with their letters, and bring the query into view."""
        marks = {}
        if key is not None:
            marks[key] = ("key", "K")
        if query is not None:
            marks[query] = ("query", "Q" if query != key else "QK")
        if marks == self._marks:
            return
        self._marks = marks
        described = [f"{letter} {index} {token_text(self._tokens[index])}" for index, (_, letter) in marks.items()]
        self.setAccessibleDescription(", ".join(described))
        if query is not None:
            self._reveal(query)
        self.viewport().update()

    # -- Qt ------------------------------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        lines = max(1, min(_MOST_LINES_HINT, self._layout.n_lines))
        return QSize(320, round(lines * self._line_height()))

    def minimumSizeHint(self) -> QSize:
        scroll_bar = 0 if self._wraps else self.horizontalScrollBar().sizeHint().height()
        return QSize(64, round(self._line_height()) + scroll_bar)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._lay_out()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        x_shift, y_shift = self.horizontalScrollBar().value(), self.verticalScrollBar().value()
        painter.translate(-x_shift, -y_shift)
        first = int((y_shift + event.rect().top()) / self._line_height())
        last = int((y_shift + event.rect().bottom()) / self._line_height())
        for line in range(max(0, first), min(last + 1, self._layout.n_lines)):
            for index in self._layout.tokens_between(line, x_shift, x_shift + self.viewport().width()):
                self._paint_chip(painter, index, self._chip(index, line))
        if self.hasFocus():
            self._paint_focus(painter)
        painter.end()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_hovered(self._token_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        self._set_hovered(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self._token_at(event.position())
        if index is not None and event.button() is Qt.MouseButton.LeftButton:
            self.token_clicked.emit(index)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()  # the press was the click

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is not None and self._tokens:
            index = 0 if self._hovered is None else self._hovered + step
            index = min(max(0, index), len(self._tokens) - 1)
            self._reveal(index)
            self._set_hovered(index)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._hovered is not None:
            self.token_clicked.emit(self._hovered)
        else:
            super().keyPressEvent(event)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _line_height(self) -> float:
        return self._metrics.height() + SPACE_1 + self._small_metrics.height() + SPACE_2

    def _chip(self, index: int, line: int) -> QRectF:
        top = line * self._line_height()
        return QRectF(self._layout.lefts[index], top, self._layout.widths[index], self._metrics.height() + SPACE_1)

    def _lay_out(self) -> None:
        room = float(self.viewport().width()) if self._wraps else None
        self._layout = lay_out(self._widths, room, [token.endswith("\n") for token in self._tokens])
        height = self._layout.n_lines * self._line_height()
        vertical, horizontal = self.verticalScrollBar(), self.horizontalScrollBar()
        vertical.setRange(0, max(0, round(height - self.viewport().height())))
        vertical.setPageStep(self.viewport().height())
        vertical.setSingleStep(round(self._line_height()))
        if room is None:
            horizontal.setRange(0, max(0, round(self._layout.width - self.viewport().width())))
            horizontal.setPageStep(self.viewport().width())
            horizontal.setSingleStep(round(self._metrics.averageCharWidth() * 4))
        self.viewport().update()

    def _paint_chip(self, painter: QPainter, index: int, rect: QRectF) -> None:
        theme = self._themes.theme
        role, letter = self._marks.get(index, ("", ""))
        fill, color = self._chip_colors(theme, role, is_hovered=index == self._hovered)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(fill))
        painter.drawRoundedRect(rect, RADIUS, RADIUS)
        painter.setFont(self._font)
        token = self._tokens[index]
        left = rect.left() + (rect.width() - token_width(self._metrics, token, _LONGEST)) / 2
        baseline = QPointF(left, rect.top() + SPACE_1 / 2 + self._metrics.ascent())
        draw_token(painter, baseline, token, QColor(color), QColor(theme.text_disabled), _LONGEST)
        painter.setFont(self._small_font)
        painter.setPen(QColor(theme[role] if role else theme.text_muted))
        below = rect.translated(0, rect.height()).adjusted(-GAP, 0, GAP, 0)
        below.setHeight(self._small_metrics.height())
        painter.drawText(below, Qt.AlignmentFlag.AlignCenter, f"{letter}{index}" if letter else str(index))

    def _paint_focus(self, painter: QPainter) -> None:
        """Around the token that the keys have reached, or all of them."""
        if self._hovered is not None:
            ring = self._chip(self._hovered, self._layout.line_of(self._hovered))
        else:
            ring = painter.worldTransform().inverted()[0].mapRect(self.viewport().rect().toRectF())
        draw_focus_ring(painter, ring, self._themes.theme)

    def _chip_colors(self, theme: Theme, role: str, *, is_hovered: bool) -> tuple[str, str]:
        if role:
            return theme[f"{role}_tint"], theme[role]
        return (theme.pressed if is_hovered else theme.hover), theme.text

    def _token_at(self, position: QPointF) -> int | None:
        line = int((position.y() + self.verticalScrollBar().value()) // self._line_height())
        return self._layout.token_at(line, position.x() + self.horizontalScrollBar().value())

    def _set_hovered(self, index: int | None) -> None:
        if index == self._hovered:
            return
        self._hovered = index
        self.viewport().update()
        if index is None:
            self.hover_left.emit()
        else:
            self.token_hovered.emit(index)

    def _reveal(self, index: int) -> None:
        """Scroll as little as shows the chip."""
        rect = self._chip(index, self._layout.line_of(index)).adjusted(0, 0, 0, self._small_metrics.height())
        view = self.viewport().size()
        for bar, start, stop, length in (
            (self.horizontalScrollBar(), rect.left(), rect.right(), view.width()),
            (self.verticalScrollBar(), rect.top(), rect.bottom(), view.height()),
        ):
            value = min(max(bar.value(), stop - length), start)
            bar.setValue(round(value))

    @Slot()
    def _on_theme_changed(self) -> None:
        self.viewport().update()
