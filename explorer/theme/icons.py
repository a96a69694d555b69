"""Icons: one-colour strokes drawn for 20 px, tinted with the theme when they are painted."""

from functools import cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QIconEngine, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

ICON_FOLDER = Path(__file__).resolve().parents[2] / "resources" / "icons"


@cache
def _source(name: str) -> str:
    """SVG text of an icon. Raises FileNotFoundError for a name that has no drawing."""
    return (ICON_FOLDER / f"{name}.svg").read_text(encoding="utf-8")


def icon(name: str, color: str | None = None) -> QIcon:
    """Icon that takes the application's text colour at the moment of painting, or `color` ("#rrggbb") always."""
    _source(name)
    return QIcon(_TintedEngine(name, color))


class _TintedEngine(QIconEngine):
    """Renders at the size and scale that is asked for, so icons stay sharp on every screen and follow the theme."""

    def __init__(self, name: str, color: str | None) -> None:
        super().__init__()
        self._name = name
        self._color = color

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        source = _source(self._name).replace("currentColor", self._tint(mode))
        QSvgRenderer(QByteArray(source.encode())).render(painter, QRectF(rect))

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        pixmap = QPixmap(size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        self.paint(painter, QRect(QPoint(0, 0), size), mode, state)
        painter.end()
        return pixmap

    def clone(self) -> QIconEngine:
        return _TintedEngine(self._name, self._color)

    def _tint(self, mode: QIcon.Mode) -> str:
        palette = QApplication.palette()
        if mode is QIcon.Mode.Disabled:
            return palette.color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.ButtonText).name()
        return self._color or palette.color(QPalette.ColorRole.ButtonText).name()
