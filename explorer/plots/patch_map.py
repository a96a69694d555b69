"""A picture with the patches a model cuts it into, and a number over each of them."""

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFontMetrics, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.plots.colormaps import colored_image
from explorer.plots.keys import ARROWS
from explorer.plots.stale import STALE_OPACITY, StaleNote
from explorer.theme.focus import draw_focus_ring
from explorer.theme.fonts import caption_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_1, SPACE_2
from explorer.viewmodels.colormaps import lookup_table
from explorer.viewmodels.records import PatchPicture

Place = tuple[int, int]
"""Row and column of a patch."""
_FAINTEST, _STRONGEST = 0.2, 0.85
"""Opacity of the colours of the smallest and the largest number: what they lie on is still seen."""
_MARGIN = 3
"""Around the picture, for the border of a patch at its edge."""
_BAR, _LEAST_BAR = 8, 112
"""Height of the colour bar, and its width at least: both its numbers stand under it, however narrow the picture is."""
_LEAST = 40
"""Height of the picture at least: below another panel in the smallest window, it stays clear of what is under it."""
_GRID_FROM = 6.0
"""Pixels of a patch from which a hairline sets it apart from its neighbours."""


class PatchMap(QWidget):
    """The picture in grey under the colours of the numbers, or alone in its own. The colour bar lies below it."""

    patch_hovered = Signal(int)
    """Index of the patch's token; once per change."""
    hover_left = Signal()
    patch_clicked = Signal(int)
    """Clicked, or Enter pressed on the patch that the arrow keys reached."""

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._picture: PatchPicture | None = None
        self._images: dict[str, QImage] = {}
        self._shows_numbers = True
        self._key: Place | None = None
        self._hovered: Place | None = None
        self._is_stale = False
        self._stale_note = StaleNote(self)
        self._stale_note.dimmed.connect(self._on_stale_note_dimmed)
        themes.theme_changed.connect(self._on_theme_changed)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setBackgroundRole(QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)

    def set_picture(self, picture: PatchPicture) -> None:
        before = self._picture
        self._picture = picture
        if before is None or before.values.shape != picture.values.shape:
            self._hovered = self._key = None
        self._images = {}
        self._stale_note.set_stale(False)
        self.setAccessibleName(picture.title)
        self.update()

    def set_stale(self, is_stale: bool) -> None:
        """Dim the picture while its successor is computed; `set_picture` ends it."""
        self._stale_note.set_stale(is_stale)

    def set_numbers_shown(self, are_shown: bool) -> None:
        """Whether colours lie over the picture."""
        self._shows_numbers = are_shown
        self.update()

    def set_key(self, index: int | None) -> None:
        """Mark the patch of a token, the key of the cell in focus; None where it is no patch. Emits nothing."""
        key = None if self._picture is None or index is None else self._picture.place_of(index)
        if key != self._key:
            self._key = key
            self.update()

    # -- Qt ------------------------------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        return QSize(240, 240 + self._below())

    def minimumSizeHint(self) -> QSize:
        return QSize(120, _LEAST + self._below())

    def paintEvent(self, event: QPaintEvent) -> None:
        picture = self._picture
        if picture is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        area = self._area(picture)
        painter.setOpacity(STALE_OPACITY if self._is_stale else 1.0)
        painter.drawImage(area, self._image("grey" if self._shows_numbers else "picture", picture))
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        if self._shows_numbers:
            painter.drawImage(area, self._image("numbers", picture))
        painter.setOpacity(1.0)
        self._paint_grid(painter, picture, area)
        theme = self._themes.theme
        for place, color, letter in ((self._key, theme.key, "K"), (picture.place, theme.query, "Q")):
            if place is not None:
                self._paint_mark(painter, self._patch(picture, area, place), color, letter)
        self._paint_bar(painter, picture, area)
        if self.hasFocus():
            draw_focus_ring(painter, area.adjusted(-4, -4, 4, 4), theme)
        painter.end()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_hovered(self._place_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        self._set_hovered(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._place_at(event.position())
        if place is not None and event.button() is Qt.MouseButton.LeftButton:
            self.patch_clicked.emit(self._index(place))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._picture is not None and event.key() in ARROWS:
            (row, column), (down, right) = self._hovered or self._picture.place or (0, 0), ARROWS[event.key()]
            n_rows, n_columns = self._picture.values.shape
            self._set_hovered((min(max(0, row + down), n_rows - 1), min(max(0, column + right), n_columns - 1)))
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._hovered is not None:
            self.patch_clicked.emit(self._index(self._hovered))
        else:
            super().keyPressEvent(event)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _below(self) -> int:
        """Room for the colour bar and its numbers."""
        return SPACE_2 + _BAR + SPACE_1 + 2 * QFontMetrics(caption_font()).height()

    def _area(self, picture: PatchPicture) -> QRectF:
        """The picture as large as there is room, at the left."""
        height, width = picture.image.shape[:2]
        room_across, room_down = self.width() - 2 * _MARGIN, self.height() - self._below() - 2 * _MARGIN
        scale = max(0.0, min(room_across / width, room_down / height))
        return QRectF(_MARGIN, _MARGIN, width * scale, height * scale)

    def _patch(self, picture: PatchPicture, area: QRectF, place: Place) -> QRectF:
        n_rows, n_columns = picture.values.shape
        height, width = area.height() / n_rows, area.width() / n_columns
        return QRectF(area.left() + place[1] * width, area.top() + place[0] * height, width, height)

    def _image(self, name: str, picture: PatchPicture) -> QImage:
        """One of the three that are painted, made when it is first needed."""
        if name not in self._images:
            if name == "numbers":
                self._images[name] = colored_image(picture.values, picture.levels, self._table(picture))
            else:
                height, width, _ = picture.image.shape
                image = QImage(picture.image.data, width, height, 3 * width, QImage.Format.Format_RGB888)
                grey, own = QImage.Format.Format_Grayscale8, QImage.Format.Format_RGB32
                self._images[name] = image.convertToFormat(grey if name == "grey" else own)
        return self._images[name]

    def _table(self, picture: PatchPicture) -> NDArray[np.uint8]:
        """The colours [256, 4], the more opaque the larger the number, multiplied by their opacity."""
        table = lookup_table(picture.colormap, is_dark=self._themes.theme.is_dark)
        opacity = np.linspace(_FAINTEST, _STRONGEST, len(table))[:, None]
        return np.rint(table * opacity).astype(np.uint8)

    def _paint_grid(self, painter: QPainter, picture: PatchPicture, area: QRectF) -> None:
        n_rows, n_columns = picture.values.shape
        if min(area.height() / n_rows, area.width() / n_columns) < _GRID_FROM:
            return
        line = QColor(self._themes.theme.surface)
        line.setAlphaF(0.35)
        painter.setPen(QPen(line, 1.0))
        for row in range(1, n_rows):
            y = area.top() + row * area.height() / n_rows
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        for column in range(1, n_columns):
            x = area.left() + column * area.width() / n_columns
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))

    def _paint_mark(self, painter: QPainter, patch: QRectF, color: str, letter: str) -> None:
        """A border in the colour, set off from any ground by a light one, and its letter on a tab above or below."""
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for outside, width, ink in ((2.0, 1.5, self._themes.theme.cursor), (0.5, 2.0, color)):
            pen = QPen(QColor(ink), width)
            pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
            painter.setPen(pen)
            painter.drawRect(patch.adjusted(-outside, -outside, outside, outside))
        painter.setFont(caption_font())
        metrics = painter.fontMetrics()
        tab = QRectF(0, 0, metrics.horizontalAdvance(letter) + SPACE_1, metrics.height())
        tab.moveBottomLeft(patch.topLeft())
        if tab.top() < 0:
            tab.moveTopLeft(patch.bottomLeft())
        painter.fillRect(tab, QColor(color))
        painter.setPen(QColor(self._themes.theme.surface))
        painter.drawText(tab, Qt.AlignmentFlag.AlignCenter, letter)

    def _paint_bar(self, painter: QPainter, picture: PatchPicture, area: QRectF) -> None:
        theme = self._themes.theme
        width = max(area.width(), min(_LEAST_BAR, self.width() - 2 * area.left()))
        bar = QRectF(area.left(), area.bottom() + SPACE_2, width, _BAR)
        ramp = np.linspace(*picture.levels, 256)[None]
        painter.drawImage(bar, colored_image(ramp, picture.levels, self._table(picture)))
        painter.setFont(caption_font())
        painter.setPen(QColor(theme.text_muted))
        metrics = painter.fontMetrics()
        ends = QRectF(bar.left(), bar.bottom() + SPACE_1, bar.width(), metrics.height())
        low, high = picture.ends
        painter.drawText(ends, Qt.AlignmentFlag.AlignLeft, low)
        painter.drawText(ends, Qt.AlignmentFlag.AlignRight, high)
        line = QRectF(bar.left(), ends.bottom(), self.width() - bar.left(), metrics.height())
        name = metrics.elidedText(picture.scale_name, Qt.TextElideMode.ElideRight, int(line.width()))
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft, name)

    def _place_at(self, point: QPointF) -> Place | None:
        if self._picture is None:
            return None
        area = self._area(self._picture)
        if not area.contains(point):
            return None
        n_rows, n_columns = self._picture.values.shape
        row = int((point.y() - area.top()) / area.height() * n_rows)
        column = int((point.x() - area.left()) / area.width() * n_columns)
        return min(row, n_rows - 1), min(column, n_columns - 1)

    def _index(self, place: Place) -> int:
        assert self._picture is not None
        return self._picture.first + place[0] * self._picture.values.shape[1] + place[1]

    def _set_hovered(self, place: Place | None) -> None:
        if place == self._hovered:
            return
        self._hovered = place
        if place is None:
            self.hover_left.emit()
        else:
            self.patch_hovered.emit(self._index(place))

    @Slot(bool)
    def _on_stale_note_dimmed(self, is_dimmed: bool) -> None:
        self._is_stale = is_dimmed
        self.update()

    @Slot()
    def _on_theme_changed(self) -> None:
        self._images = {}
        self.update()
