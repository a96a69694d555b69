"""The rectangle in which curves lie, with its two axes.

Built from pyqtgraph's parts and not from its PlotItem, which brings seven menus and a control panel along.
"""

from PySide6.QtCore import QEvent, QPointF, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QFrame, QWidget

from explorer.plots.setup import pg
from explorer.plots.value_axis import ValueAxis
from explorer.theme.colors import Theme
from explorer.theme.metrics import SPACE_2, SPACE_6

_LEFT_ROOM = 64
"""Width of the y axis with its title: reserved, so that curves do not move when numbers grow."""


class PlotArea(pg.GraphicsView):
    """Wheel and drag change x; y fits what is on screen. Says where the mouse is within the axes."""

    hovered = Signal(QPointF)
    """Place in data coordinates."""
    left = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # no key does anything here
        self.box = pg.ViewBox(enableMenu=False, defaultPadding=0.02)
        self.box.setMouseEnabled(x=True, y=False)
        self.box.setAutoVisible(y=True)
        self.axes = {side: ValueAxis(side) for side in ("left", "bottom")}
        self.axes["left"].setWidth(_LEFT_ROOM)
        for axis in self.axes.values():
            axis.linkToView(self.box)
            axis.setZValue(self.box.zValue() - 1)  # the grid lies under the curves
        self.axes["left"].setGrid(255)
        layout = pg.GraphicsLayout()
        layout.setContentsMargins(0, SPACE_2, SPACE_6, 0)  # half of the last number of either axis
        layout.setSpacing(0)
        layout.addItem(self.axes["left"], 0, 0)
        layout.addItem(self.box, 0, 1)
        layout.addItem(self.axes["bottom"], 1, 1)
        self.setCentralItem(layout)

    def set_theme(self, theme: Theme) -> None:
        self.setBackground(theme.surface)
        for axis in self.axes.values():
            axis.set_theme(theme)

    def mouseMoveEvent(self, ev: QMouseEvent) -> None:
        super().mouseMoveEvent(ev)
        position = self.mapToScene(ev.position().toPoint())
        if self.box.sceneBoundingRect().contains(position):
            self.hovered.emit(self.box.mapSceneToView(position))
        else:
            self.left.emit()

    def leaveEvent(self, ev: QEvent) -> None:
        super().leaveEvent(ev)
        self.left.emit()
