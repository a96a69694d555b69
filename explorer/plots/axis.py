"""The labels beside a matrix: tokens while they fit, indices when they do not; of times, as many as fit."""

from typing import Literal

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from explorer.theme.colors import Theme
from explorer.theme.fonts import caption_font, token_font
from explorer.theme.metrics import RADIUS, SPACE_1, SPACE_2
from explorer.theme.token_paint import draw_token, token_width
from explorer.theme.token_text import Reading, token_text
from explorer.viewmodels.records import Range
from explorer.viewmodels.ticks import index_step

_LONGEST = 14
"""Characters of a label before it is cut."""
_FONT_SCALE = 0.92
_SMALLEST = 0.72
"""Share of the full size down to which labels shrink before they thin out."""
_DENSEST_TOKENS = 2
"""Tokens are written while at least every second one fits."""
_SAMPLE = 2000
"""Labels that are measured to reserve room."""
_INDEX_GAP = 36


class TokenAxis(QWidget):
    """Left: rows, right-aligned. Top: columns, turned by a quarter unless every label fits lying."""

    def __init__(self, theme: Theme, side: Literal["left", "top"], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_left = side == "left"
        self._theme = theme
        self._labels: tuple[str, ...] = ()
        self._size = 1
        self._first = 0
        self._title = ""
        self._role = "text"
        self._span: Range = (0.0, 1.0)
        self._marked: int | None = None
        self._hovered: int | None = None
        self._lies = False
        self._longest_label = 0.0
        self._read_fonts()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def set_content(self, labels: tuple[str, ...], size: int, title: str, role: str, *, first: int = 0) -> None:
        """`labels` name all `size` indices, or none of them; `first` is the number of index 0."""
        content = labels, size, title, role, first
        if content == (self._labels, self._size, self._title, self._role, self._first):
            return
        self._labels, self._size, self._title, self._role, self._first = content
        shown = (*labels[:_SAMPLE], str(first), str(first + size - 1))
        self._longest_label = max(token_width(self._metrics, label, _LONGEST) for label in shown)
        self.update()

    def set_span(self, span: Range) -> None:
        self._span = span
        self.update()

    def set_marks(self, marked: int | None, hovered: int | None) -> None:
        """Indices whose labels are always written: of the locked and of the hovered cell."""
        if (marked, hovered) != (self._marked, self._hovered):
            self._marked, self._hovered = marked, hovered
            self.update()

    def thickness(self, pixels_per_index: float) -> float:
        """Room the axis needs across its length when the whole matrix is on screen at this density."""
        self._lies = not self._is_left and self._longest_label + SPACE_2 <= pixels_per_index
        text = self._metrics.height() if self._lies or self._are_indices_lying() else self._longest_label
        return self._title_height() + text + SPACE_1 + SPACE_2

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self._paint_title(painter)
        always = [index for index in (self._hovered, self._marked) if index is not None and self._is_visible(index)]
        painter.setFont(self._regular_font())
        for index in self._regular_indices():
            if all(abs(index - other) * self._density() >= self._metrics.height() for other in always):
                self._paint_label(painter, index, self._theme.text_muted)
        painter.setFont(self._font)
        for index in dict.fromkeys(always):
            self._paint_label(painter, index, self._theme[self._role], is_marked=True)
        painter.end()

    def _read_fonts(self) -> None:
        self._font = token_font(_FONT_SCALE)
        self._metrics = QFontMetricsF(self._font)
        self._title_font = caption_font()

    def _title_height(self) -> float:
        return QFontMetricsF(self._title_font).height() + SPACE_1

    def _length(self) -> float:
        return self.height() if self._is_left else self.width()

    def _density(self) -> float:
        """Pixels per index."""
        return self._length() / max(1e-9, self._span[1] - self._span[0])

    def _center(self, index: int) -> float:
        return (index + 0.5 - self._span[0]) * self._density()

    def _is_visible(self, index: int) -> bool:
        return -0.5 <= self._center(index) <= self._length() + 0.5

    @property
    def _is_scale(self) -> bool:
        return bool(self._labels) and isinstance(self._labels[-1], Reading)

    def _are_indices_lying(self) -> bool:
        return not self._labels and not self._is_left

    def _token_step(self) -> int:
        return index_step(self._density(), _SMALLEST * self._metrics.height())

    def _shows_tokens(self) -> bool:
        return bool(self._labels) and self._token_step() <= _DENSEST_TOKENS

    def _thinned_label(self, index: int) -> str:
        """What stands for an index among others that have no label."""
        return self._labels[index] if self._is_scale else str(self._first + index)

    def _index_gap(self) -> float:
        """Pixels from one index to the next: the widest fits between, also when the last is moved into the axis."""
        if self._is_left:
            return _INDEX_GAP
        widest = max(self._metrics.horizontalAdvance(self._thinned_label(end)) for end in (0, self._size - 1))
        return max(_INDEX_GAP, 1.5 * widest + SPACE_1)

    def _regular_font(self) -> QFont:
        """Full size, or as small as lets every token that is written stand in its row."""
        if self._shows_tokens():
            return token_font(_FONT_SCALE * min(1.0, self._token_step() * self._density() / self._metrics.height()))
        return self._font

    def _regular_indices(self) -> range:
        step = self._token_step() if self._shows_tokens() else index_step(self._density(), self._index_gap())
        first = -(-(int(max(0.0, self._span[0])) + self._first) // step) * step - self._first  # a round number
        last = min(self._size, int(self._span[1]) + 1)
        return range(first, last, step)

    def _paint_title(self, painter: QPainter) -> None:
        painter.setFont(self._title_font)
        painter.setPen(QColor(self._theme[self._role] if self._role != "text" else self._theme.text_muted))
        metrics = QFontMetricsF(self._title_font)
        height, room = metrics.height(), self._length() - metrics.horizontalAdvance(" \u2192")
        title = metrics.elidedText(self._title, Qt.TextElideMode.ElideRight, room)
        if self._is_left:
            painter.save()
            painter.rotate(-90)
            area = QRectF(-self._length(), 0, self._length(), height)
            painter.drawText(area, Qt.AlignmentFlag.AlignRight, f"\u2190 {title}")
            painter.restore()
        else:
            painter.drawText(QRectF(0, 0, self._length(), height), Qt.AlignmentFlag.AlignLeft, f"{title} \u2192")

    def _paint_label(self, painter: QPainter, index: int, color: str, *, is_marked: bool = False) -> None:
        center = self._center(index)
        if not 0.0 <= center <= self._length():
            return
        is_token = bool(self._labels) and (is_marked or self._shows_tokens())
        label = self._labels[index] if is_token else self._thinned_label(index)
        metrics = QFontMetricsF(painter.font())
        size = QSizeF(token_width(metrics, label, _LONGEST), metrics.height())
        painter.save()
        if self._is_left:
            top = min(max(0.0, center - size.height() / 2), self._length() - size.height())
            painter.translate(self.width() - SPACE_2 - size.width(), top)
        elif self._lies or not is_token:
            left = min(max(0.0, center - size.width() / 2), self._length() - size.width())
            painter.translate(left, self.height() - SPACE_1 - size.height())
        else:
            painter.translate(center - size.height() / 2, self.height() - SPACE_2)
            painter.rotate(-90)
        if is_marked:
            self._paint_mark(painter, size)
        baseline = QPointF(0, metrics.ascent())
        painter.setPen(QColor(color))
        if is_token:
            dimmed = QColor(self._theme.text_disabled)
            draw_token(painter, baseline, label, QColor(color), dimmed, _LONGEST)
        else:
            painter.drawText(baseline, label)
        painter.restore()

    def _paint_mark(self, painter: QPainter, size: QSizeF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        tint = {"query": self._theme.query_tint, "key": self._theme.key_tint}.get(self._role, self._theme.selection)
        painter.setBrush(QColor(tint))
        painter.drawRoundedRect(QRectF(-SPACE_1, 0, size.width() + 2 * SPACE_1, size.height()), RADIUS, RADIUS)


def label_text(labels: tuple[str, ...], index: int, first: int = 0) -> str:
    """A cell's place for a tooltip or a screen reader: number and token."""
    return f"{first + index} {token_text(labels[index])}" if labels else str(first + index)
