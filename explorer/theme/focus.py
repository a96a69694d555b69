"""The ring around a painted widget that has the keyboard."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from explorer.theme.colors import Theme
from explorer.theme.metrics import RADIUS


def draw_focus_ring(painter: QPainter, around: QRectF, theme: Theme) -> None:
    """One hairline in the accent colour, just inside `around`."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(theme.accent), 1.0))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(around.adjusted(0.5, 0.5, -0.5, -0.5), RADIUS, RADIUS)
