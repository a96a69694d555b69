"""The cells of a matrix, and the mouse upon them."""

import math
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QImage,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QWidget

from explorer.plots.colormaps import colored_image, mask_image
from explorer.plots.patterns import dot_tile, fill_cells, hatch_tile
from explorer.plots.pooling import pooled_picture
from explorer.plots.stale import STALE_OPACITY
from explorer.plots.zoom import Frame
from explorer.theme.colors import Theme
from explorer.viewmodels.colormaps import lookup_table
from explorer.viewmodels.records import HeatmapPicture, Range

Cell = tuple[int, int]
"""(row, col)"""
_WHEEL_STEP = 1.2
"""Zoom factor of one notch of a wheel."""
_NOTCH = 120.0
_SMALLEST_BORDER = 6.0
"""A marked cell is at least this many pixels wide, however small its cells are."""
_GRID_FROM = 12.0
"""Pixels per cell from which neighbouring cells are set apart by a hairline."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Images:
    """The values of a picture as images."""

    picture: HeatmapPicture
    cells: QImage
    masked: QImage | None
    missing: QImage | None


class Layer:
    """A picture and the part of the matrix it covers; its images are made for the pixels there are, and kept."""

    def __init__(self, picture: HeatmapPicture, theme: Theme) -> None:
        self.rows, self.cols, self.reach, self.is_exact = picture.rows, picture.cols, picture.reach(), picture.is_exact
        self._picture, self._is_dark = picture, theme.is_dark
        self._step = 0, 0
        self._images: Images | None = None

    def step(self, height: float, width: float) -> tuple[int, int]:
        """How many of its values, down and across, share one of so many device pixels."""
        n_rows, n_cols = self._picture.values.shape
        return max(1, math.ceil(n_rows / max(height, 1.0))), max(1, math.ceil(n_cols / max(width, 1.0)))

    def images(self, step: tuple[int, int]) -> Images:
        """The values as they are, or the strongest of each `step`."""
        if self._images is None or step != self._step:
            picture = self._picture if step == (1, 1) else pooled_picture(self._picture, *step)
            self._step, self._images = step, self._drawn(picture)
        return self._images

    def _drawn(self, picture: HeatmapPicture) -> Images:
        hidden = picture.masked
        if picture.missing is not None:
            hidden = picture.missing if hidden is None else hidden | picture.missing
        table = lookup_table(picture.colormap, is_dark=self._is_dark)
        return Images(
            picture=picture,
            cells=colored_image(picture.values, picture.levels, table, hidden),
            masked=None if picture.masked is None else mask_image(picture.masked),
            missing=None if picture.missing is None else mask_image(picture.missing),
        )


class MatrixCanvas(QWidget):
    """Paints layers within a frame; the wheel zooms about the pointer, a drag pans."""

    frame_changed = Signal()
    cell_hovered = Signal(int, int)
    hover_left = Signal()
    cell_clicked = Signal(int, int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._frame = Frame.whole((1, 1))
        self._layers: list[Layer] = []
        self._locked: Cell | None = None
        self._hovered: Cell | None = None
        self._is_stale = False
        self._press: QPointF | None = None
        self._is_dragging = False
        self._hatch: QPixmap | None = None
        self._dots: QPixmap | None = None
        self.setMouseTracking(True)
        self.setCursor(Qt.CursorShape.CrossCursor)

    @property
    def frame(self) -> Frame:
        return self._frame

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._hatch = self._dots = None
        self.update()

    def set_layers(self, layers: list[Layer]) -> None:
        """Painted in this order."""
        self._layers = layers
        self.update()

    @property
    def is_dense(self) -> bool:
        """Whether several values of the uppermost picture share a pixel."""
        return bool(self._layers) and self._step(self._layers[-1]) != (1, 1)

    def set_frame(self, frame: Frame) -> None:
        frame = frame.resized(self.width(), self.height())
        if frame != self._frame:
            self._frame = frame
            self.update()
            self.frame_changed.emit()

    def set_marks(self, locked: Cell | None, hovered: Cell | None) -> None:
        for before, after in ((self._locked, locked), (self._hovered, hovered)):
            for cell in (before, after) if before != after else ():
                if cell is not None:
                    self.update(self._border(cell).toAlignedRect().adjusted(-4, -4, 4, 4))
        self._locked, self._hovered = locked, hovered

    def set_stale(self, is_stale: bool) -> None:
        if is_stale != self._is_stale:
            self._is_stale = is_stale
            self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.set_frame(self._frame)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._is_stale:
            painter.setOpacity(STALE_OPACITY)
        for layer in self._layers:
            self._paint_layer(painter, layer, event.rect().toRectF())
        painter.setOpacity(1.0)
        for cell, width in ((self._hovered, 1.0), (self._locked, 2.0)):
            if cell is not None:
                self._paint_border(painter, cell, width)
        painter.end()

    def wheelEvent(self, event: QWheelEvent) -> None:
        notches = event.angleDelta().y() / _NOTCH
        if notches:
            self.set_frame(self._frame.zoomed(_WHEEL_STEP**notches, event.position()))
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._press = event.position()
            self._is_dragging = False
        else:
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        position = event.position()
        if self._press is None:
            self._hover(position)
            return
        moved = position - self._press
        if self._is_dragging or moved.manhattanLength() >= QApplication.startDragDistance():
            self._is_dragging = True
            self._press = position
            self.set_frame(self._frame.panned(moved))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            super().mouseReleaseEvent(event)
            return
        if self._press is not None and not self._is_dragging and self._layers:
            self.cell_clicked.emit(*self._frame.cell_at(event.position()))
        self._press = None
        self._is_dragging = False

    def leaveEvent(self, event: QEvent) -> None:
        if self._layers:
            self.hover_left.emit()

    def _hover(self, position: QPointF) -> None:
        if self._layers and QRectF(self.rect()).contains(position):
            cell = self._frame.cell_at(position)
            if cell != self._hovered:
                self.cell_hovered.emit(*cell)

    def _paint_layer(self, painter: QPainter, layer: Layer, area: QRectF) -> None:
        visible = self._frame.pixels(layer.rows, layer.cols).intersected(area)
        if visible.isEmpty():
            return
        images = layer.images(self._step(layer))
        cell, scale = self._frame.pixels((0, 1), (0, 1)), self.devicePixelRatioF()
        pixel = 1 / (cell.height() * scale), 1 / (cell.width() * scale)
        target = self._frame.pixels(*images.picture.reach(pixel))
        painter.setClipRect(visible)
        painter.drawImage(target, images.cells)
        if layer.is_exact:
            self._paint_grid(painter, visible)
        for tile, cells in ((self._hatch_tile(), images.masked), (self._dot_tile(), images.missing)):
            if cells is not None:
                fill_cells(painter, tile, target, visible, cells)
        painter.setClipping(False)

    def _step(self, layer: Layer) -> tuple[int, int]:
        target, scale = self._frame.pixels(*layer.reach), self.devicePixelRatioF()
        return layer.step(target.height() * scale, target.width() * scale)

    def _paint_grid(self, painter: QPainter, area: QRectF) -> None:
        """Hairlines between cells that are large enough."""
        cell = self._frame.pixels((0, 1), (0, 1))
        if min(cell.width(), cell.height()) < _GRID_FROM:
            return
        painter.setPen(QPen(QColor(self._theme.surface), 1.0))
        for col in _inner_lines(self._frame.cols):
            x = round(self._frame.pixels((0, 1), (col, col)).x())
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        for row in _inner_lines(self._frame.rows):
            y = round(self._frame.pixels((row, row), (0, 1)).y())
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))

    def _border(self, cell: Cell) -> QRectF:
        row, col = cell
        rect = self._frame.pixels((row, row + 1), (col, col + 1))
        across, down = (max(0.0, _SMALLEST_BORDER - side) / 2 for side in (rect.width(), rect.height()))
        return rect.adjusted(-across, -down, across, down)

    def _paint_border(self, painter: QPainter, cell: Cell, width: float) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for color, thickness in ((self._theme.cursor_halo, width + 2.0), (self._theme.cursor, width)):
            pen = QPen(QColor(color), thickness)
            pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
            painter.setPen(pen)
            painter.drawRect(self._border(cell))

    def _hatch_tile(self) -> QPixmap:
        if self._hatch is None or self._hatch.devicePixelRatio() != self.devicePixelRatioF():
            self._hatch = hatch_tile(self._theme, self.devicePixelRatioF())
        return self._hatch

    def _dot_tile(self) -> QPixmap:
        if self._dots is None or self._dots.devicePixelRatio() != self.devicePixelRatioF():
            self._dots = dot_tile(self._theme, self.devicePixelRatioF())
        return self._dots


def _inner_lines(span: Range) -> range:
    """Cell borders strictly within a span."""
    return range(int(span[0]) + 1, int(span[1] - 1e-9) + 1)
