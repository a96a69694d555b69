"""A matrix as a picture: cells, token labels, colour bar, marginal strips; zoom, pan, hover and lock.

Plain painted widgets and not a pyqtgraph scene: labels that thin out, patterns that keep their size at every zoom and
cells that stay square need the pixels themselves, and each part repaints alone.
"""

from PySide6.QtCore import QPoint, QPointF, QRect, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFocusEvent, QHideEvent, QKeyEvent, QPainter, QPaintEvent, QPalette, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from explorer.plots.axis import TokenAxis, label_text
from explorer.plots.colorbar import ColorBar, Sign
from explorer.plots.keys import ARROWS
from explorer.plots.matrix import Cell, Layer, MatrixCanvas
from explorer.plots.patterns import dot_tile, hatch_tile
from explorer.plots.stale import StaleNote
from explorer.plots.strip import THICKNESS, MarginalStrip
from explorer.plots.zoom import Frame
from explorer.theme.colors import Theme
from explorer.theme.focus import draw_focus_ring
from explorer.theme.fonts import caption_font, heading_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import FRAME_MS, SPACE_2, SPACE_3, SPACE_4
from explorer.viewmodels.colormaps import lookup_table
from explorer.viewmodels.painted import painted_note
from explorer.viewmodels.records import HeatmapPicture, Range
from explorer.widgets.elided_label import ElidedLabel

_ZOOM_STEP = 1.5
_LOWEST_BAR, _HIGHEST_BAR = 120, 240
"""Heights of a colour bar that can be read, however low or tall the matrix is."""
_SQUARE_UNTIL = 3.0
"""Ratio of the sides up to which cells are kept square; a longer matrix fills its room."""


class HeatmapPlot(QWidget):
    """Shows a HeatmapPicture. Rows and columns in signals and methods are token indices of the whole matrix."""

    cell_hovered = Signal(int, int)
    """(row, col) under the mouse or moved to with the arrow keys; once per change."""
    hover_left = Signal()
    cell_clicked = Signal(int, int)
    """(row, col) clicked, or Enter pressed on the marked cell. The owner decides whether it locks."""
    lock_released = Signal()
    """Esc."""
    view_range_changed = Signal(object, object, object)
    """(rows, cols, size): the whole cells on screen as two Spans, which an exact tile should cover, and the device
    pixels (height, width) that they fill; once a frame at most."""

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._picture: HeatmapPicture | None = None
        self._overview: HeatmapPicture | None = None
        self._locked: Cell | None = None
        self._hovered: Cell | None = None
        self._is_drawn = True
        """A hidden plot colours and arranges nothing until it is shown."""
        self._build_header()
        self._build_plot(themes.theme)
        self._stale_note = StaleNote(self._canvas)
        self._stale_note.dimmed.connect(self._canvas.set_stale)
        self._range_timer = QTimer(self)
        self._range_timer.setSingleShot(True)
        self._range_timer.setInterval(FRAME_MS)
        self._range_timer.timeout.connect(self._on_range_timer_timeout)
        self._canvas.frame_changed.connect(self._on_canvas_frame_changed)
        self._canvas.cell_hovered.connect(self._on_canvas_cell_hovered)
        self._canvas.hover_left.connect(self._on_canvas_hover_left)
        self._canvas.cell_clicked.connect(self.cell_clicked)
        themes.theme_changed.connect(self._on_theme_changed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setBackgroundRole(QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self._show_parts()

    # -- what is shown -------------------------------------------------------------------------------------------------

    @property
    def picture(self) -> HeatmapPicture | None:
        """What is shown now."""
        return self._picture

    def set_picture(self, picture: HeatmapPicture | None) -> None:
        """Show a picture, or nothing. The zoom stays while the whole matrix keeps its size."""
        before = self._picture
        self._picture = picture
        self._overview = self._overview_for(picture)
        self._stale_note.set_stale(False)
        if picture is not None:
            self._read(picture)
            if before is None or before.shape != picture.shape:
                self._locked = self._hovered = None
                self._canvas.set_frame(Frame.whole(picture.shape))
        self._show_parts()
        self._show_marks()
        self._is_drawn = False
        if self.isVisible():
            self._draw()

    def set_stale(self, is_stale: bool) -> None:
        """Dim the picture while its successor is computed; after 0.3 s say so. `set_picture` ends it."""
        self._stale_note.set_stale(is_stale)

    def set_locked_cell(self, cell: Cell | None) -> None:
        """Draw the border that stays."""
        self._locked = self._within(cell)
        self._show_marks()

    def set_hovered_cell(self, cell: Cell | None) -> None:
        """Mark a cell that is hovered in another view; emits nothing."""
        self._hovered = self._within(cell)
        self._show_marks()

    def move_cell(self, d_row: int, d_col: int) -> None:
        """Move the locked cell (emits `cell_clicked`), or else the hovered one (emits `cell_hovered`), into view."""
        if self._picture is None:
            return
        row, col = self._locked or self._hovered or self._middle_cell()
        n_rows, n_cols = self._picture.shape
        cell = min(max(0, row + d_row), n_rows - 1), min(max(0, col + d_col), n_cols - 1)
        self._canvas.set_frame(self._canvas.frame.revealing(*cell))
        if self._locked is None:
            self.set_hovered_cell(cell)
            self.cell_hovered.emit(*cell)
        elif cell != self._locked:
            self.set_locked_cell(cell)
            self.cell_clicked.emit(*cell)

    # -- which part is shown -------------------------------------------------------------------------------------------

    @property
    def view_range(self) -> tuple[Range, Range]:
        """(rows, cols) on screen, as fractions of cells."""
        return self._canvas.frame.rows, self._canvas.frame.cols

    def zoom_in(self) -> None:
        self._zoom(_ZOOM_STEP)

    def zoom_out(self) -> None:
        self._zoom(1.0 / _ZOOM_STEP)

    def reset_view(self) -> None:
        self._canvas.set_frame(Frame.whole(self._canvas.frame.shape))

    def set_view_range(self, rows: Range, cols: Range) -> None:
        self._canvas.set_frame(self._canvas.frame.showing(rows, cols))

    # -- Qt ------------------------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        marked = self._locked or self._hovered
        if event.key() in ARROWS:
            self.move_cell(*ARROWS[event.key()])
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and marked is not None:
            self.cell_clicked.emit(*marked)
        elif event.key() == Qt.Key.Key_Escape and self._locked is not None:
            self.lock_released.emit()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.hasFocus() and self._picture is not None:
            painter = QPainter(self)
            canvas = QRect(self._canvas.mapTo(self, QPoint()), self._canvas.size())
            draw_focus_ring(painter, canvas.adjusted(-3, -3, 3, 3).toRectF(), self._themes.theme)
            painter.end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._is_drawn:
            self._draw()
        self._range_timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._range_timer.stop()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _build_header(self) -> None:
        self._title = ElidedLabel(parent=self)
        self._title.setFont(heading_font())
        self._note = ElidedLabel(parent=self, role=QPalette.ColorRole.PlaceholderText)
        self._note.setFont(caption_font())
        header = QHBoxLayout()
        header.setSpacing(SPACE_3)
        header.addWidget(self._title)
        header.addWidget(self._note, 1)
        self._body = QWidget(self)
        self._body.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_2)
        layout.addLayout(header)
        layout.addWidget(self._body, 1)

    def _build_plot(self, theme: Theme) -> None:
        self._canvas = MatrixCanvas(theme, self._body)
        self._row_axis = TokenAxis(theme, "left", self._body)
        self._col_axis = TokenAxis(theme, "top", self._body)
        self._given = MarginalStrip(theme, "right", self._body)
        self._received = MarginalStrip(theme, "bottom", self._body)
        self._bar = ColorBar(theme, self._body)

    def _read(self, picture: HeatmapPicture) -> None:
        """Hand the parts what they show."""
        self._title.set_text(picture.title)
        self.setAccessibleName(picture.title)
        n_rows, n_cols = picture.shape
        self._row_axis.set_content(
            picture.row_labels, n_rows, picture.row_title, picture.row_role, first=picture.row_first
        )
        self._col_axis.set_content(
            picture.col_labels, n_cols, picture.col_title, picture.col_role, first=picture.col_first
        )
        if picture.given is not None:
            self._given.set_content(
                picture.given, picture.rows, picture.cells[0], picture.given_title, picture.row_role
            )
        if picture.received is not None:
            self._received.set_content(
                picture.received, picture.cols, picture.cells[1], picture.received_title, picture.col_role
            )

    def _overview_for(self, picture: HeatmapPicture | None) -> HeatmapPicture | None:
        """The whole picture that lies under a part of it."""
        before = self._overview
        if picture is None or picture.is_whole:
            return picture
        is_same = before is not None and before.identity is not None and before.identity == picture.identity
        return before if is_same and before is not None and before.levels == picture.levels else None

    def _show_parts(self) -> None:
        picture = self._picture
        for part in (self._title, self._note, self._canvas, self._row_axis, self._col_axis, self._bar):
            part.setVisible(picture is not None)
        self._given.setVisible(picture is not None and picture.given is not None)
        self._received.setVisible(picture is not None and picture.received is not None)

    def _draw(self) -> None:
        self._is_drawn = True
        self._color_cells()
        self._arrange()

    def _color_cells(self) -> None:
        picture, theme = self._picture, self._themes.theme
        if picture is None:
            self._canvas.set_layers([])
            return
        pictures = [picture] if self._overview is None else [self._overview, picture]
        self._canvas.set_layers([Layer(picture, theme) for picture in dict.fromkeys(pictures)])
        table = lookup_table(picture.colormap, is_dark=theme.is_dark)
        self._bar.set_content(table, picture.levels, picture.scale_name, picture.ticks, self._signs(picture, theme))
        self._write_note()

    def _write_note(self) -> None:
        if self._picture is not None:
            self._note.set_text(painted_note(self._picture.note, is_dense=self._canvas.is_dense))

    def _signs(self, picture: HeatmapPicture, theme: Theme) -> list[Sign]:
        scale = self.devicePixelRatioF()
        signs: list[Sign] = []
        if picture.masked is not None:
            signs.append((self.tr("masked"), hatch_tile(theme, scale)))
        if picture.missing is not None:
            signs.append((picture.missing_name, dot_tile(theme, scale)))
        return signs

    def _arrange(self) -> None:
        """Give each part its pixels; the group of all parts stands in the middle."""
        picture = self._picture
        if picture is None or self._body.width() < 1:
            return
        right = SPACE_4 + round(self._bar.width_needed()) + self._strip_room(self._given)
        bottom = max(self._strip_room(self._received), round(self._bar.overhang()))
        left, top = self._label_room(picture, right, bottom)
        room = self._body.width() - left - right, self._body.height() - top - bottom
        width, height = _matrix_size(picture, *room)
        x = left + max(0, (room[0] - width) // 2)
        self._canvas.setGeometry(x, top, width, height)
        self._row_axis.setGeometry(x - left, top, left, height)
        self._col_axis.setGeometry(x, 0, width, top)
        self._given.set_lead(top)
        self._given.setGeometry(x + width + SPACE_2, 0, round(THICKNESS), top + height)
        self._received.set_lead(left)
        self._received.setGeometry(x - left, top + height + SPACE_2, left + width, round(THICKNESS))
        bar_x = x + width + self._strip_room(self._given) + SPACE_4
        over = round(self._bar.overhang())
        bar_height = min(max(height, _LOWEST_BAR), _HIGHEST_BAR, self._body.height() - top - over) + 2 * over
        self._bar.setGeometry(QRect(bar_x, top - over, round(self._bar.width_needed()), bar_height))
        self._canvas.set_frame(self._canvas.frame)

    def _label_room(self, picture: HeatmapPicture, right: int, bottom: int) -> tuple[int, int]:
        """Width of the row labels and height of the column labels, at the density of the whole matrix."""
        left = round(self._row_axis.thickness(self._body.height() / picture.shape[0]))
        if not self._received.isHidden():
            left = max(left, round(self._received.lead_needed()))
        top = round(self._col_axis.thickness(1.0))
        width, _ = _matrix_size(picture, self._body.width() - left - right, self._body.height() - top - bottom)
        top = round(self._col_axis.thickness(width / picture.shape[1]))
        return left, top if self._given.isHidden() else max(top, round(self._given.lead_needed()))

    def _strip_room(self, strip: MarginalStrip) -> int:
        return 0 if strip.isHidden() else SPACE_2 + round(THICKNESS)

    def _show_marks(self) -> None:
        self._canvas.set_marks(self._locked, self._hovered)
        locked, hovered = self._locked or (None, None), self._hovered or (None, None)
        self._row_axis.set_marks(locked[0], hovered[0])
        self._col_axis.set_marks(locked[1], hovered[1])
        self.setAccessibleDescription(self._described_cell())

    def _described_cell(self) -> str:
        cell = self._hovered or self._locked
        if cell is None or self._picture is None:
            return ""
        row, col = cell
        return self.tr("{row_title} {row}, {col_title} {col}").format(
            row_title=self._picture.row_title,
            row=label_text(self._picture.row_labels, row, self._picture.row_first),
            col_title=self._picture.col_title,
            col=label_text(self._picture.col_labels, col, self._picture.col_first),
        )

    def _within(self, cell: Cell | None) -> Cell | None:
        """The cell when the matrix has it."""
        if cell is None or self._picture is None:
            return None
        return cell if 0 <= cell[0] < self._picture.shape[0] and 0 <= cell[1] < self._picture.shape[1] else None

    def _middle_cell(self) -> Cell:
        return self._canvas.frame.cell_at(QPointF(self._canvas.width() / 2, self._canvas.height() / 2))

    def _zoom(self, factor: float) -> None:
        """About the marked cell when it is on screen, else about the middle."""
        frame = self._canvas.frame
        row, col = self._hovered or self._locked or self._middle_cell()
        about = frame.pixels((row, row + 1), (col, col + 1)).center()
        if not self._canvas.rect().toRectF().contains(about):
            about = self._canvas.rect().toRectF().center()
        self._canvas.set_frame(frame.zoomed(factor, about))

    @Slot()
    def _on_canvas_frame_changed(self) -> None:
        frame = self._canvas.frame
        self._row_axis.set_span(frame.rows)
        self._col_axis.set_span(frame.cols)
        self._given.set_span(frame.rows)
        self._received.set_span(frame.cols)
        self._write_note()
        if self.isVisible() and not self._range_timer.isActive():
            self._range_timer.start()

    @Slot(int, int)
    def _on_canvas_cell_hovered(self, row: int, col: int) -> None:
        self.set_hovered_cell((row, col))
        self.cell_hovered.emit(row, col)

    @Slot()
    def _on_canvas_hover_left(self) -> None:
        self.set_hovered_cell(None)
        self.hover_left.emit()

    @Slot()
    def _on_range_timer_timeout(self) -> None:
        if self._picture is None:
            return
        rows, cols = self._canvas.frame.whole_cells()
        area = self._canvas.frame.pixels(rows, cols).size() * self.devicePixelRatioF()
        self.view_range_changed.emit(rows, cols, (round(area.height()), round(area.width())))

    @Slot(object)
    def _on_theme_changed(self, theme: Theme) -> None:
        for part in (self._canvas, self._row_axis, self._col_axis, self._given, self._received, self._bar):
            part.set_theme(theme)
        self._is_drawn = False
        if self.isVisible():
            self._draw()


def _matrix_size(picture: HeatmapPicture, width: int, height: int) -> tuple[int, int]:
    """(width, height) of the matrix within its room: square cells unless the matrix is very long."""
    width, height = max(1, width), max(1, height)
    n_rows, n_cols = picture.shape
    if not picture.square_cells or not 1 / _SQUARE_UNTIL <= n_rows / n_cols <= _SQUARE_UNTIL:
        return width, height
    cell = min(width / n_cols, height / n_rows)
    return max(1, round(cell * n_cols)), max(1, round(cell * n_rows))
