"""Named curves over one x axis: losses, schedules, norms, positions."""

import numpy as np
from PySide6.QtCore import QPointF, Qt, Signal, Slot
from PySide6.QtGui import QPalette, QPen, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from explorer.plots.legend import CurveLegend, LegendEntry
from explorer.plots.plot_area import PlotArea
from explorer.plots.setup import pg
from explorer.plots.stale import STALE_OPACITY, StaleNote
from explorer.theme.colors import Theme
from explorer.theme.fonts import heading_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_2
from explorer.viewmodels.records import CurvePicture, Series
from explorer.viewmodels.sizes import number_text
from explorer.widgets.elided_label import ElidedLabel

_ZOOM_STEP = 1.5
_SAMPLES_PER_PIXEL = 2.0
_POINT = 5
"""Pixels of a curve of one point."""


class CurvePlot(QWidget):
    """Shows a CurvePicture; the legend above the axes reads out each curve at the pointer, else at the marker, else
    its latest value.

    x follows the data until the user zooms or pans; y always fits what is on screen.
    """

    x_hovered = Signal(float)
    hover_left = Signal()

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._picture: CurvePicture | None = None
        self._curves: dict[str, pg.PlotDataItem] = {}
        self._is_drawn = True
        self._is_dressed = True
        """A hidden plot takes the colours of another theme when it is shown."""
        self._hovered_x: float | None = None
        self._title = ElidedLabel(parent=self)
        self._title.setFont(heading_font())
        self._legend = CurveLegend(self)
        self._build_plot()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_2)
        layout.addWidget(self._title)
        layout.addWidget(self._legend)
        layout.addWidget(self._area, 1)
        self._stale_note = StaleNote(self._area)
        self._stale_note.dimmed.connect(self._on_stale_note_dimmed)
        themes.theme_changed.connect(self._on_theme_changed)
        self._apply_theme(themes.theme)
        self.setBackgroundRole(QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)

    @property
    def picture(self) -> CurvePicture | None:
        return self._picture

    def set_picture(self, picture: CurvePicture | None) -> None:
        """Show curves. Those whose names stay are updated in place; x follows the data until the user zooms."""
        self._picture = picture
        self._is_drawn = False
        self._stale_note.set_stale(False)
        if self.isVisible():
            self._draw()

    def set_marker(self, x: float | None, label: str = "") -> None:
        """Move the vertical line alone; the legend names it and reads the curves there."""
        self._marker_label = label
        self._marker.setVisible(x is not None)
        if x is not None:
            self._marker.setValue(x)
        self._read_out()

    def set_stale(self, is_stale: bool) -> None:
        """Dim the curves while their successors are computed; `set_picture` ends it."""
        self._stale_note.set_stale(is_stale)

    @property
    def x_range(self) -> tuple[float, float]:
        low, high = self._area.box.viewRange()[0]
        return low, high

    def zoom_in(self) -> None:
        self._area.box.scaleBy(x=1.0 / _ZOOM_STEP)

    def zoom_out(self) -> None:
        self._area.box.scaleBy(x=_ZOOM_STEP)

    def reset_view(self) -> None:
        """Show everything and follow the latest x again."""
        xs = [one.x for one in self._picture.series if len(one.x)] if self._picture is not None else []
        if xs:  # curves that are clipped to the view do not know how far they reach
            self._area.box.setXRange(min(x[0] for x in xs), max(x[-1] for x in xs))
        self._area.box.enableAutoRange()

    # -- Qt ------------------------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._is_dressed:
            self._apply_theme(self._themes.theme)
        if not self._is_drawn:
            self._draw()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _build_plot(self) -> None:
        self._area = PlotArea(self)
        self._marker = pg.InfiniteLine()
        self._marker_label = ""
        self._guide = pg.InfiniteLine()
        for line in (self._marker, self._guide):
            line.hide()
            self._area.box.addItem(line, ignoreBounds=True)
        self._area.hovered.connect(self._on_area_hovered)
        self._area.left.connect(self._on_area_left)

    def _draw(self) -> None:
        self._is_drawn = True
        picture = self._picture
        series = () if picture is None else picture.series
        for name in self._curves.keys() - {one.name for one in series}:
            self._area.box.removeItem(self._curves.pop(name))
        if picture is not None:
            self._title.set_text(picture.title)
            self.setAccessibleName(picture.title)
            self._area.axes["left"].set_log(picture.log_y)
            self._name_axes(picture)
            self.set_marker(picture.marker, picture.marker_label)
        else:
            self.set_marker(None)
        self._area.setVisible(picture is not None)
        for one in series:
            self._draw_series(one, is_log=picture is not None and picture.log_y)
        self._area.box.prepareForPaint()  # or the range settles while painting, and all is painted twice
        self._read_out()

    def _draw_series(self, series: Series, *, is_log: bool) -> None:
        curve = self._curves.get(series.name)
        if curve is None:
            curve = self._curves[series.name] = _new_curve()
            self._area.box.addItem(curve)
        curve.setLogMode(False, is_log)
        curve.setPen(self._pen(series))
        if np.isnan(series.y).all():
            curve.setData(x=[], y=[])
        else:
            is_point = np.count_nonzero(np.isfinite(series.y)) == 1  # which a line would not show
            brush = pg.mkBrush(self._color(series))
            curve.setData(
                x=series.x,
                y=series.y,
                symbol="o" if is_point else None,
                symbolSize=_POINT,
                symbolBrush=brush,
                symbolPen=None,
            )

    def _color(self, series: Series) -> str:
        theme = self._themes.theme
        return theme[series.role] if series.head is None else theme.head_color(*series.head)

    def _pen(self, series: Series) -> QPen:
        style = Qt.PenStyle.DashLine if series.dashed else Qt.PenStyle.SolidLine
        pen = pg.mkPen(self._color(series), width=series.width, style=style)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        return pen

    def _name_axes(self, picture: CurvePicture) -> None:
        for side, title, unit in (
            ("bottom", picture.x_title, picture.x_unit),
            ("left", picture.y_title, picture.y_unit),
        ):
            self._area.axes[side].set_title(f"{title} ({unit})" if unit else title)

    def _read_out(self) -> None:
        """Write each curve's value at the pointer, else at the marker, else its latest, into the legend."""
        picture = self._picture
        if picture is None:
            self._legend.set_entries((), "")
            return
        x, where = self._hovered_x, self._marker_label
        if x is not None:
            where = f"{picture.x_title} {number_text(x)}"
        elif self._marker.isVisible():
            x = self._marker.x()
        elif len(ends := {float(one.x[-1]) for one in picture.series if len(one.x)}) == 1:
            where = f"{picture.x_title} {number_text(*ends)}"
        entries = tuple(
            LegendEntry(name=one.name, color=self._color(one), is_dashed=one.dashed, reading=_reading(one, x))
            for one in picture.series
        )
        self._legend.set_entries(entries, where)

    def _nearest_x(self, x: float) -> float | None:
        """The sample nearest to x among all curves."""
        series = () if self._picture is None else self._picture.series
        found = [float(one.x[_nearest(one.x, x)]) for one in series if len(one.x)]
        return min(found, key=lambda sample: abs(sample - x), default=None)

    def _apply_theme(self, theme: Theme) -> None:
        self._is_dressed = True
        self._area.set_theme(theme)
        self._marker.setPen(pg.mkPen(theme.text_muted, width=1, style=Qt.PenStyle.DashLine))
        self._guide.setPen(pg.mkPen(theme.border, width=1))
        for one in () if self._picture is None else self._picture.series:
            if one.name in self._curves:
                self._curves[one.name].setPen(self._pen(one))
        self._read_out()

    @Slot(QPointF)
    def _on_area_hovered(self, place: QPointF) -> None:
        x = self._nearest_x(place.x())
        if x is None or x == self._hovered_x:
            return
        self._hovered_x = x
        self._guide.setValue(x)
        self._guide.show()
        self._read_out()
        self.x_hovered.emit(x)

    @Slot()
    def _on_area_left(self) -> None:
        self._hovered_x = None
        self._guide.hide()
        self._read_out()
        self.hover_left.emit()

    @Slot(bool)
    def _on_stale_note_dimmed(self, is_dimmed: bool) -> None:
        for curve in self._curves.values():
            curve.setOpacity(STALE_OPACITY if is_dimmed else 1.0)

    @Slot(object)
    def _on_theme_changed(self, theme: Theme) -> None:
        self._is_dressed = False
        if self.isVisible():
            self._apply_theme(theme)


def _new_curve() -> pg.PlotDataItem:
    """A curve that draws its peaks within the view, a few samples a pixel, with gaps at NaN."""
    curve = pg.PlotDataItem(
        connect="finite",
        clipToView=True,
        autoDownsample=True,
        downsampleMethod="peak",
        autoDownsampleFactor=_SAMPLES_PER_PIXEL,
    )
    curve.curve.setSegmentedLineMode("on")  # a path of thousands of points is ten times slower to stroke
    return curve


def _nearest(x: np.ndarray, value: float) -> int:
    """Index of the entry of sorted `x` nearest to `value`."""
    right = min(int(np.searchsorted(x, value)), len(x) - 1)
    return right - 1 if right > 0 and value - x[right - 1] < x[right] - value else right


def _reading(series: Series, x: float | None) -> str:
    """Value at x, or the last one; a dash where there is none."""
    if not len(series.x):
        return "\u2013"
    index = len(series.x) - 1 if x is None else _nearest(series.x, x)
    if x is not None and not series.x[0] <= x <= series.x[-1]:
        return "\u2013"
    return number_text(float(series.y[index]))
