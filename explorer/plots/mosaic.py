"""All heads of all layers as one picture."""

import math

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal, SignalInstance, Slot
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPixmap,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from explorer.plots.colormaps import colored_image
from explorer.plots.keys import ARROWS
from explorer.plots.mosaic_layout import BAR, Head, MosaicLayout
from explorer.plots.patterns import hatch_tile
from explorer.plots.pooling import pooled_tiles
from explorer.plots.stale import STALE_OPACITY, StaleNote
from explorer.theme.focus import draw_focus_ring
from explorer.theme.fonts import caption_font, heading_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_1, SPACE_2
from explorer.viewmodels.colormaps import lookup_table
from explorer.viewmodels.painted import painted_note
from explorer.viewmodels.records import FloatArray, MosaicPicture
from explorer.viewmodels.ticks import index_step

_LABEL_GAP = 20
"""Least distance between two head numbers."""


class HeadMosaic(QWidget):
    """Layers run downward, heads to the right, as rows and columns of small pictures that fill the widget."""

    head_hovered = Signal(int, int)
    """(layer, head)"""
    hover_left = Signal()
    head_clicked = Signal(int, int)
    head_double_clicked = Signal(int, int)
    thumbnail_size_changed = Signal(int)
    """Edge of one picture in device pixels, on a change: the size that thumbnails are best made for."""

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._picture: MosaicPicture | None = None
        self._layout: MosaicLayout | None = None
        self._tiles: QPixmap | None = None
        self._selected: Head | None = None
        self._hovered: Head | None = None
        self._is_stale = False
        self._thumbnail_size = 0
        self._stale_note = StaleNote(self)
        self._stale_note.dimmed.connect(self._on_stale_note_dimmed)
        themes.theme_changed.connect(self._on_theme_changed)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setBackgroundRole(QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self.setAccessibleName(self.tr("All heads"))

    def set_picture(self, picture: MosaicPicture | None) -> None:
        """Show a picture, or nothing."""
        self._picture = picture
        self._hovered = self._within(self._hovered)
        self._selected = self._within(self._selected)
        self._stale_note.set_stale(False)
        if picture is not None:
            self.setAccessibleName(picture.title)
        self._arrange()

    def set_stale(self, is_stale: bool) -> None:
        """Dim the picture while its successor is computed; `set_picture` ends it."""
        self._stale_note.set_stale(is_stale)

    def set_selected_head(self, head: Head | None) -> None:
        """Draw the frame that stays; emits nothing."""
        self._selected = self._within(head)
        self.setAccessibleDescription("" if self._selected is None else self._described(self._selected))
        self.update()

    def move_head(self, d_layer: int, d_head: int) -> None:
        """Move the selection (arrow keys do it too); emits `head_clicked`."""
        if self._layout is None:
            return
        layer, head = self._selected or (0, 0)
        layer = min(max(0, layer + d_layer), self._layout.n_layers - 1)
        head = min(max(0, head + d_head), self._layout.n_heads - 1)
        if (layer, head) != self._selected:
            self.set_selected_head((layer, head))
            self.head_clicked.emit(layer, head)

    # -- Qt ------------------------------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        return QSize(280, 280)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, 120)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange()

    def showEvent(self, event: QShowEvent) -> None:
        self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._picture is None or self._layout is None:
            return
        painter = QPainter(self)
        self._paint_title(painter, self._picture, self._layout)
        self._paint_numbers(painter, self._layout)
        if self._tiles is None:
            self._tiles = self._painted_tiles(self._picture, self._layout)
        painter.setOpacity(STALE_OPACITY if self._is_stale else 1.0)
        painter.drawPixmap(0, 0, self._tiles)
        painter.setOpacity(1.0)
        self._paint_frames(painter, self._layout)
        if self.hasFocus():
            draw_focus_ring(painter, self._layout.area.adjusted(-4, -4, 4, 4).toRectF(), self._themes.theme)
        painter.end()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_hovered(self._head_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        self._set_hovered(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._press(event, self.head_clicked)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self._press(event, self.head_double_clicked)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in ARROWS:
            self.move_head(*ARROWS[event.key()])
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            head = self._head_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), "" if head is None else self._described(head), self)
            return True
        return super().event(event)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        """Find the tiles' places; they are painted when next needed."""
        self._layout = self._tiles = None
        if self._picture is not None:
            n_layers, n_heads = self._picture.thumbnails.shape[:2]
            caption = QFontMetrics(caption_font())
            left = caption.height() + SPACE_1 + caption.horizontalAdvance(str(n_layers - 1)) + SPACE_2
            n_captions = 3 if self._picture.note else 2
            top = QFontMetrics(heading_font()).height() + n_captions * caption.height() + SPACE_2 + SPACE_1
            area = QRect(left, top, self.width() - left - 2, self.height() - top - 2)
            has_bars = self._picture.head_values is not None
            self._layout = MosaicLayout.fitting((n_layers, n_heads), area, has_bars=has_bars)
            self._stale_note.set_place(self._layout.area)
            self._announce_size(round(self._layout.tile * self.devicePixelRatioF()))
        self.update()

    def _announce_size(self, size: int) -> None:
        if self.isVisible() and size != self._thumbnail_size:
            self._thumbnail_size = size
            self.thumbnail_size_changed.emit(size)

    def _painted_tiles(self, picture: MosaicPicture, layout: MosaicLayout) -> QPixmap:
        """All tiles and bars, painted once for a size and a picture."""
        theme, scale = self._themes.theme, self.devicePixelRatioF()
        tiles = pooled_tiles(picture.thumbnails, *self._step(picture, layout))
        table = lookup_table(picture.colormap, is_dark=theme.is_dark)
        atlas = colored_image(_side_by_side(tiles), picture.levels, table)
        height, width = tiles.shape[2:]
        canvas = QPixmap(self.size() * scale)
        canvas.setDevicePixelRatio(scale)
        canvas.fill(Qt.GlobalColor.transparent)
        painter = QPainter(canvas)
        hatch = hatch_tile(theme, scale) if np.isnan(tiles).any() else None
        for layer in range(layout.n_layers):
            for head in range(layout.n_heads):
                target = layout.tile_rect(layer, head)
                if hatch is not None:
                    painter.drawTiledPixmap(target, hatch)
                painter.drawImage(target, atlas, QRect(head * width, layer * height, width, height))
        if picture.head_values is not None and layout.bar_room:
            self._paint_bars(painter, layout, picture.head_values)
        painter.end()
        return canvas

    def _step(self, picture: MosaicPicture, layout: MosaicLayout) -> tuple[int, int]:
        """How many values of a small picture, down and across, share a pixel."""
        pixels = layout.tile * self.devicePixelRatioF()
        down, across = (max(1, math.ceil(n / pixels)) for n in picture.thumbnails.shape[2:])
        return down, across

    def _paint_bars(self, painter: QPainter, layout: MosaicLayout, values: FloatArray) -> None:
        theme = self._themes.theme
        largest = float(np.nanmax(values, initial=0.0)) or 1.0
        for (layer, head), value in np.ndenumerate(values):
            tile = layout.tile_rect(layer, head)
            track = QRectF(tile.left(), tile.bottom() + 2, tile.width(), BAR)
            painter.fillRect(track, QColor(theme.grid))
            if value > 0.0:
                track.setWidth(track.width() * float(value) / largest)
                painter.fillRect(track, QColor(theme.text_muted))

    def _paint_title(self, painter: QPainter, picture: MosaicPicture, layout: MosaicLayout) -> None:
        theme = self._themes.theme
        y = 0
        note = painted_note(picture.note, is_dense=self._step(picture, layout) != (1, 1))
        lines = ((heading_font(), theme.text, picture.title), (caption_font(), theme.text_muted, note))
        for font, color, text in lines:
            metrics = QFontMetrics(font)
            painter.setFont(font)
            painter.setPen(QColor(color))
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, self.width())
            painter.drawText(QPointF(0, y + metrics.ascent()), shown)
            y += metrics.height()

    def _paint_numbers(self, painter: QPainter, layout: MosaicLayout) -> None:
        """Names of the axes and numbers of layers and heads, thinned to what can be read."""
        painter.setFont(caption_font())
        painter.setPen(QColor(self._themes.theme.text_muted))
        metrics = painter.fontMetrics()
        down, right = layout.pitch
        numbers_top = layout.top - SPACE_1 - metrics.height()
        painter.drawText(QPointF(layout.left, numbers_top - metrics.descent()), self.tr("head \u2192"))
        for head in range(0, layout.n_heads, index_step(right, _LABEL_GAP)):
            tile = layout.tile_rect(0, head)
            area = QRectF(tile.center().x() - right, numbers_top, 2 * right, metrics.height())
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, str(head))
        for layer in range(0, layout.n_layers, index_step(down, metrics.height())):
            tile = layout.tile_rect(layer, 0)
            area = QRectF(0, tile.center().y() - metrics.height() / 2, layout.left - SPACE_2, metrics.height())
            painter.drawText(area, Qt.AlignmentFlag.AlignRight, str(layer))
        painter.save()
        painter.translate(0, layout.top)
        painter.rotate(-90)
        name = self.tr("\u2190 layer")
        painter.drawText(QPointF(-metrics.horizontalAdvance(name), metrics.ascent()), name)
        painter.restore()

    def _paint_frames(self, painter: QPainter, layout: MosaicLayout) -> None:
        theme = self._themes.theme
        for head, color, width in ((self._hovered, theme.text_muted, 1.0), (self._selected, theme.text, 2.0)):
            if head is None:
                continue
            pen = QPen(QColor(color), width)
            pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            outside = width / 2 + (1.0 if layout.gap >= 4 else 0.0)
            painter.drawRect(QRectF(layout.tile_rect(*head)).adjusted(-outside, -outside, outside, outside))

    def _described(self, head: Head) -> str:
        layer, index = head
        text = self.tr("layer {layer} head {head}").format(layer=layer, head=index)
        values = None if self._picture is None else self._picture.head_values
        if self._picture is None or values is None or np.isnan(values[layer, index]):
            return text
        return f"{text}, {self._picture.value_name} {values[layer, index]:.4g}"

    def _within(self, head: Head | None) -> Head | None:
        """The head when the picture has it."""
        if head is None or self._picture is None:
            return None
        n_layers, n_heads = self._picture.thumbnails.shape[:2]
        return head if 0 <= head[0] < n_layers and 0 <= head[1] < n_heads else None

    def _head_at(self, point: QPointF) -> Head | None:
        return None if self._layout is None else self._layout.head_at(point)

    def _set_hovered(self, head: Head | None) -> None:
        if head == self._hovered:
            return
        self._hovered = head
        self.update()
        if head is None:
            self.hover_left.emit()
        else:
            self.head_hovered.emit(*head)

    def _press(self, event: QMouseEvent, signal: SignalInstance) -> None:
        head = self._head_at(event.position())
        if head is not None and event.button() is Qt.MouseButton.LeftButton:
            self.set_selected_head(head)
            signal.emit(*head)

    @Slot(bool)
    def _on_stale_note_dimmed(self, is_dimmed: bool) -> None:
        self._is_stale = is_dimmed
        self.update()

    @Slot()
    def _on_theme_changed(self) -> None:
        self._tiles = None
        self.update()


def _side_by_side(thumbnails: FloatArray) -> FloatArray:
    """[layers, heads, y, x] as one picture [layers * y, heads * x]."""
    n_layers, n_heads, height, width = thumbnails.shape
    return thumbnails.transpose(0, 2, 1, 3).reshape(n_layers * height, n_heads * width)
