"""Several plots of curves, side by side where there is room."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QScrollArea, QWidget

from explorer.plots.curves import CurvePlot
from explorer.theme.metrics import SPACE_3, SPACE_4

_LEAST_WIDTH, _LEAST_HEIGHT = 180, 136
"""Pixels of a plot whose numbers do not lie upon each other."""
_MOST_COLUMNS = 2


class CurveGrid(QScrollArea):
    """The plots that are not hidden, in reading order; it scrolls where they would be too low."""

    def __init__(self, plots: Sequence[CurvePlot], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plots = tuple(plots)
        self._n_columns = _MOST_COLUMNS
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        page = QWidget()
        self._grid = QGridLayout(page)
        self._grid.setContentsMargins(0, 0, SPACE_4, 0)
        self._grid.setHorizontalSpacing(SPACE_4)
        self._grid.setVerticalSpacing(SPACE_3)
        for row, plot in enumerate(self._plots):
            plot.setMinimumHeight(_LEAST_HEIGHT)
            self._grid.addWidget(plot, row, 0)
        self.setWidget(page)
        for widget in (page, self.viewport()):
            widget.setAutoFillBackground(False)
        self.place()

    def place(self) -> None:
        """After a plot was shown or hidden. The first takes a whole row where a place would stay empty."""
        shown = [plot for plot in self._plots if not plot.isHidden()]
        place = 0
        for plot in shown:
            is_wide = place == 0 and len(shown) % self._n_columns
            self._grid.addWidget(plot, *divmod(place, self._n_columns), 1, self._n_columns if is_wide else 1)
            place += self._n_columns if is_wide else 1
        for column in range(_MOST_COLUMNS):
            self._grid.setColumnStretch(column, int(column < self._n_columns))
        for row in range(len(self._plots)):
            self._grid.setRowStretch(row, int(row * self._n_columns < place))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        n_columns = min(_MOST_COLUMNS, max(1, self.viewport().width() // _LEAST_WIDTH))
        if n_columns != self._n_columns:
            self._n_columns = n_columns
            self.place()
