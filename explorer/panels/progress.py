"""A training as it runs: curves on the left, the attention on the watched example on the right."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QPalette, QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QSizePolicy,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from core_model.training.events import ProbeAttention
from explorer.panels.panel import Panel
from explorer.plots.curve_grid import CurveGrid
from explorer.plots.curves import CurvePlot
from explorer.plots.heatmap import HeatmapPlot
from explorer.plots.hover_card import HoverCard
from explorer.plots.mosaic import HeadMosaic
from explorer.state.app_state import AppState
from explorer.state.training import TrainingSnapshot, WatchedHead
from explorer.state.training_moves import watch_head
from explorer.theme.icons import icon
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import ICON, SPACE_3, SPACE_4
from explorer.viewmodels.sites import site_name
from explorer.viewmodels.training import CURVES, probe_heads_picture, probe_picture, settled, training_line
from explorer.viewmodels.training_form import first_problem
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.head_picker import HeadPicker
from explorer.widgets.progress_line import ProgressTrack
from explorer.widgets.state_page import StatePage

_roles = QPalette.ColorRole


class ProgressPanel(Panel):
    """Draws the news while it is on screen: one picture after the other, for all of them in every frame would take half
    of a core from the training."""

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._state = AppState()
        self._snapshot: TrainingSnapshot | None = None
        self._drawn: ProbeAttention | None = None
        self._is_outdated = False
        self._turn = 0
        self._words = ElidedLabel(parent=self)
        self._words.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)  # it changes with every frame
        self._track = ProgressTrack(self)
        self._curves = [CurvePlot(themes, self) for _ in CURVES]
        self._matrix = HeatmapPlot(themes, self)
        self._card = HoverCard(themes, self._matrix, self)
        self._mosaic = HeadMosaic(themes, self)
        self._mosaic.head_clicked.connect(self._on_head_picked)
        self._build_controls()
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.setChildrenCollapsible(False)
        self._grid = CurveGrid(self._curves, self)
        splitter.addWidget(self._grid)
        splitter.addWidget(self._attention())
        splitter.setSizes([500, 500])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_3, SPACE_3, SPACE_3, SPACE_3)
        layout.setSpacing(SPACE_3)
        layout.addLayout(self._line())
        self._page = StatePage(themes, splitter, self)
        self._page.action_triggered.connect(self._on_page_action_triggered)
        self._page.cancel_requested.connect(self._on_page_cancel_requested)
        layout.addWidget(self._page, 1)

    def controls(self) -> Sequence[QWidget]:
        return self._pause, self._step, self._stop, self._heads, self._site  # last, for not every model has several

    def show_state(self, state: AppState) -> None:
        looks_different = state.display != self._state.display or state.watched != self._state.watched
        self._state = state
        phase = state.training.phase
        if state.training.settings is None or phase == "starting":
            self._snapshot = None
        self._pause.setEnabled(phase in ("running", "paused"))
        self._pause.setIcon(icon("play" if phase == "paused" else "pause"))
        self._pause.setText(self.tr("Resume") if phase == "paused" else self.tr("Pause"))
        self._step.setEnabled(phase in ("running", "paused"))
        self._stop.setEnabled(state.training.is_busy and phase != "stopping")
        self._is_outdated = self._is_outdated or looks_different
        self._draw()

    def show_training(self, snapshot: TrainingSnapshot) -> None:
        is_first, self._snapshot = self._snapshot is None, snapshot
        if is_first or self._state.training.phase != "running":
            self._draw()  # no other news may follow
        elif self.isVisible():
            self._draw_line()
            self._draw_next()

    def zoom(self, step: int) -> None:
        {1: self._matrix.zoom_in, -1: self._matrix.zoom_out, 0: self._matrix.reset_view}[step]()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._draw()

    def _draw(self) -> None:
        """Everything, as it is now."""
        if not self.isVisible():
            return
        self._turn_page()
        self._draw_line()
        for number in range(len(self._curves)):
            self._draw_curve(number)
        self._draw_attention()

    def _draw_next(self) -> None:
        """The picture whose turn it is."""
        self._turn = (self._turn + 1) % (len(self._curves) + 1)
        if self._turn < len(self._curves):
            self._draw_curve(self._turn)
        else:
            self._draw_attention()

    def _draw_line(self) -> None:
        line = training_line(self._state.training, self._snapshot)
        self._words.set_text(line.text)
        self._words.setForegroundRole(_roles.BrightText if line.is_problem else _roles.WindowText)
        self._words.setVisible(self._state.training.settings is not None)  # the page says it before the first one
        self._track.setVisible(self._state.training.settings is not None and not line.is_problem)
        self._track.set_fraction(line.fraction)

    def _draw_curve(self, number: int) -> None:
        picture = CURVES[number](self._snapshot) if self._snapshot else None
        plot = self._curves[number]
        plot.set_picture(picture)
        if plot.isHidden() != (picture is None):
            plot.setVisible(picture is not None)
            self._grid.place()

    def _draw_attention(self) -> None:
        probe = self._snapshot.probe if self._snapshot else None
        if probe is not self._drawn or self._is_outdated:
            self._drawn, self._is_outdated = probe, False
            self._draw_probe(probe)

    def _turn_page(self) -> None:
        """Curves once there are numbers; until then, what to do or what is going on."""
        training = self._state.training
        if self._snapshot is not None:
            self._page.show_content()
        elif training.is_busy:
            self._page.show_working(self.tr("Making the model and its examples"))
        elif training.phase == "failed":
            self._page.show_error(self.tr("The training failed"), training.problem)
        else:
            text = self.tr(
                "Choose a task on the left and start: the curves and the attention appear here as it learns."
            )
            problem = first_problem(self._state.draft)
            tip = self.tr("Train with the settings of the form (Ctrl+Return).")
            self._page.show_empty(problem or text, self.tr("Start training"), tip=tip, is_enabled=not problem)

    def _draw_probe(self, probe: ProbeAttention | None) -> None:
        self._heads.setEnabled(probe is not None)
        self._site.setVisible(probe is not None and len(probe.sites) > 1)
        if probe is None:
            self._matrix.set_picture(None)
            self._card.read_anew()
            self._mosaic.set_picture(None)
            return
        watched, display = settled(self._state.watched, probe), self._state.display
        assert watched.site is not None
        self._offer_sites(list(probe.sites), watched.site)
        self._heads.set_sizes(*probe.sites[watched.site].weights.shape[:2])
        self._heads.set_head(watched.layer, watched.head)
        self._matrix.set_picture(probe_picture(probe, watched, display))
        self._card.read_anew()
        self._mosaic.set_picture(probe_heads_picture(probe, watched, display))
        self._mosaic.set_selected_head((watched.layer, watched.head))

    def _offer_sites(self, sites: list[str], chosen: str) -> None:
        if sites != [self._site.itemData(index) for index in range(self._site.count())]:
            self._site.clear()
            for site in sites:
                self._site.addItem(site_name(site), site)
        self._site.setCurrentIndex(self._site.findData(chosen))

    def _build_controls(self) -> None:
        self._pause = self._button("pause", self.tr("Resume"), self.tr("Hold or go on (Space)."), "train_pause")
        self._pause.setMinimumWidth(self._pause.sizeHint().width())  # the wider of its two words
        self._step = self._button("step", self.tr("Step"), self.tr("One update, then hold (N)."), "train_step")
        self._stop = self._button("stop", self.tr("Stop"), self.tr("End the training and save it."), "train_stop")
        self._site = QComboBox()
        self._site.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._site.setToolTip(self.tr("Attention site: which tokens look at which."))
        self._site.hide()
        self._site.activated.connect(self._on_site_activated)
        self._heads = HeadPicker()
        self._heads.setToolTip(self.tr("Layer and head whose attention is shown, counted from 0."))
        self._heads.head_picked.connect(self._on_head_picked)

    def _button(self, icon_name: str, text: str, tooltip: str, command: str) -> QToolButton:
        button = QToolButton()
        button.setIcon(icon(icon_name))
        button.setIconSize(QSize(ICON, ICON))
        button.setText(text)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setToolTip(tooltip)
        button.setProperty("command", command)
        button.clicked.connect(self._on_button_clicked)
        return button

    def _line(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(SPACE_3)
        line.addWidget(self._words, 3)
        line.addWidget(self._track, 2)
        return line

    def _attention(self) -> QWidget:
        split = QSplitter(Qt.Orientation.Vertical, self)
        split.setContentsMargins(SPACE_4, 0, 0, 0)
        split.setChildrenCollapsible(False)
        split.addWidget(self._matrix)
        split.addWidget(_below(self._mosaic))
        split.setSizes([640, 360])
        return split

    @Slot()
    def _on_page_action_triggered(self) -> None:
        self.command_requested.emit("train_start")

    @Slot()
    def _on_page_cancel_requested(self) -> None:
        self.command_requested.emit("train_stop")

    @Slot()
    def _on_button_clicked(self) -> None:
        self.command_requested.emit(self.sender().property("command"))

    @Slot(int)
    def _on_site_activated(self, index: int) -> None:
        watched = self._state.watched
        self.noticed.emit(
            watch_head(WatchedHead(site=self._site.itemData(index), layer=watched.layer, head=watched.head))
        )

    @Slot(int, int)
    def _on_head_picked(self, layer: int, head: int) -> None:
        self.noticed.emit(watch_head(WatchedHead(site=self._state.watched.site, layer=layer, head=head)))


def _below(widget: QWidget) -> QWidget:
    """The widget with room above it."""
    page = QWidget()
    layout = QVBoxLayout(page)
    layout.setContentsMargins(0, SPACE_3, 0, 0)
    layout.addWidget(widget)
    return page
