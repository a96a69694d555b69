"""How cells without a number look: fine lines where masked, sparse dots where not computed."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen, QPixmap

from explorer.theme.colors import Theme

_TILE = 6


def hatch_tile(theme: Theme, scale: float) -> QPixmap:
    """Fine diagonal lines: masked. `scale` is the device pixel ratio."""
    tile, painter = _begin_tile(theme, scale)
    painter.setPen(QPen(QColor(theme.hatch), 1.0))
    for shift in (-_TILE, 0, _TILE):
        painter.drawLine(QPointF(shift - 1, _TILE + 1), QPointF(shift + _TILE + 1, -1))
    painter.end()
    return tile


def dot_tile(theme: Theme, scale: float) -> QPixmap:
    """Sparse dots: not computed."""
    tile, painter = _begin_tile(theme, scale)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(theme.missing))
    painter.drawEllipse(QPointF(_TILE / 2, _TILE / 2), 1.0, 1.0)
    painter.end()
    return tile


def fill_cells(painter: QPainter, tile: QPixmap, target: QRectF, visible: QRectF, cells: QImage) -> None:
    """Fill with `tile` where `cells`, an image stretched over `target`, is opaque; only within `visible`."""
    scale = tile.devicePixelRatio()
    canvas = QImage((visible.size() * scale).toSize(), QImage.Format.Format_ARGB32_Premultiplied)
    canvas.setDevicePixelRatio(scale)
    cutter = QPainter(canvas)
    cutter.drawTiledPixmap(QRectF(QPointF(), visible.size()), tile, visible.topLeft())
    cutter.setCompositionMode(QPainter.CompositionMode.CompositionMode_DestinationIn)
    cutter.drawImage(target.translated(-visible.topLeft()), cells)
    cutter.end()
    painter.drawImage(visible.topLeft(), canvas)


def _begin_tile(theme: Theme, scale: float) -> tuple[QPixmap, QPainter]:
    tile = QPixmap(QSize(_TILE, _TILE) * scale)
    tile.setDevicePixelRatio(scale)
    tile.fill(QColor(theme.surface))
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    return tile, painter
