"""Which part of a matrix is on screen: zoom, pan and the map between cells and pixels, as arithmetic."""

from dataclasses import dataclass, replace
from math import ceil, floor

from PySide6.QtCore import QPointF, QRectF

from explorer.viewmodels.records import Range, Span

_FEWEST_CELLS = 4.0
"""The deepest zoom."""


def zoomed(span: Range, factor: float, about: float, size: float, smallest: float) -> Range:
    """`span` made 1/factor as wide with `about` kept in its place, within 0 .. size and never below `smallest`."""
    width = min(size, max(smallest, (span[1] - span[0]) / factor))
    place = (about - span[0]) / (span[1] - span[0])
    return kept_inside((about - place * width, about + (1.0 - place) * width), size)


def kept_inside(span: Range, size: float) -> Range:
    """The span moved, not cut, so that it lies within 0 .. size; a wider one becomes (0, size)."""
    width = span[1] - span[0]
    if width >= size * (1.0 - 1e-9):
        return 0.0, float(size)
    start = min(max(0.0, span[0]), size - width)
    return start, start + width


def revealed(span: Range, index: int, size: float) -> Range:
    """The span moved as little as shows all of cell `index`."""
    shift = min(0.0, index - span[0]) + max(0.0, index + 1.0 - span[1])
    return kept_inside((span[0] + shift, span[1] + shift), size)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The rows and columns on screen, and the pixels they fill. Row 0 is at the top."""

    shape: tuple[int, int]
    """(n_rows, n_cols) of the whole matrix."""
    rows: Range
    cols: Range
    width: float = 1.0
    height: float = 1.0

    @classmethod
    def whole(cls, shape: tuple[int, int], width: float = 1.0, height: float = 1.0) -> "Frame":
        return cls(shape=shape, rows=(0.0, float(shape[0])), cols=(0.0, float(shape[1])), width=width, height=height)

    def resized(self, width: float, height: float) -> "Frame":
        return replace(self, width=max(1.0, width), height=max(1.0, height))

    def zoomed(self, factor: float, about: QPointF) -> "Frame":
        """Both axes by the same factor, `about` (pixels) kept in its place."""
        row, col = self.at(about)
        return replace(
            self,
            rows=zoomed(self.rows, factor, row, self.shape[0], self._smallest(0)),
            cols=zoomed(self.cols, factor, col, self.shape[1], self._smallest(1)),
        )

    def panned(self, by: QPointF) -> "Frame":
        """Moved with the pointer by so many pixels."""
        d_row = -by.y() * (self.rows[1] - self.rows[0]) / self.height
        d_col = -by.x() * (self.cols[1] - self.cols[0]) / self.width
        return self.showing((self.rows[0] + d_row, self.rows[1] + d_row), (self.cols[0] + d_col, self.cols[1] + d_col))

    def showing(self, rows: Range, cols: Range) -> "Frame":
        return replace(self, rows=kept_inside(rows, self.shape[0]), cols=kept_inside(cols, self.shape[1]))

    def revealing(self, row: int, col: int) -> "Frame":
        return replace(self, rows=revealed(self.rows, row, self.shape[0]), cols=revealed(self.cols, col, self.shape[1]))

    def whole_cells(self) -> tuple[Span, Span]:
        """(rows, cols): the cells that are on screen at least in part."""
        (row0, row1), (col0, col1) = self.rows, self.cols
        return (floor(row0), ceil(row1)), (floor(col0), ceil(col1))

    def at(self, point: QPointF) -> tuple[float, float]:
        """(row, col) under a pixel, as fractions of cells."""
        row = self.rows[0] + point.y() * (self.rows[1] - self.rows[0]) / self.height
        col = self.cols[0] + point.x() * (self.cols[1] - self.cols[0]) / self.width
        return row, col

    def cell_at(self, point: QPointF) -> tuple[int, int]:
        """(row, col) of the cell under a pixel, the nearest one for a point outside."""
        row, col = self.at(point)
        return (
            min(max(0, floor(row)), self.shape[0] - 1),
            min(max(0, floor(col)), self.shape[1] - 1),
        )

    def pixels(self, rows: Range, cols: Range) -> QRectF:
        """Rectangle of some rows and columns."""
        y_scale = self.height / (self.rows[1] - self.rows[0])
        x_scale = self.width / (self.cols[1] - self.cols[0])
        return QRectF(
            (cols[0] - self.cols[0]) * x_scale,
            (rows[0] - self.rows[0]) * y_scale,
            (cols[1] - cols[0]) * x_scale,
            (rows[1] - rows[0]) * y_scale,
        )

    def _smallest(self, axis: int) -> float:
        """Fewest cells along an axis: four along the shorter one, in proportion along the other."""
        return self.shape[axis] * min(1.0, _FEWEST_CELLS / min(self.shape))
