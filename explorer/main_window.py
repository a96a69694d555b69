"""The window: panels in docks and at the centre, bars around them. It wires and arranges; it decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QSize, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QCloseEvent, QDesktopServices, QDragEnterEvent, QDropEvent, QPaintEvent, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QLineEdit,
    QMainWindow,
    QMessageBox,
    QToolBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from core_model.errors import CoreError
from explorer.about import about_text
from explorer.actions.commands import command, commands_now
from explorer.actions.desk import Desk
from explorer.actions.qt_actions import ActionTable
from explorer.actions.questions import Questions
from explorer.chrome.centre import Centre
from explorer.chrome.docks import Docks
from explorer.chrome.downloading import Downloader
from explorer.chrome.dropping import drop_move
from explorer.chrome.errands import Errands
from explorer.chrome.exporting import Exporter
from explorer.chrome.layout_buttons import layout_buttons
from explorer.chrome.leaving import Leaving
from explorer.chrome.open_button import open_button
from explorer.chrome.palette import CommandPalette
from explorer.chrome.panel_host import AskingHost, DetailPresenter, PanelHost
from explorer.chrome.status_line import StatusLine
from explorer.chrome.tab_order import set_reading_order
from explorer.chrome.top_bar import TopBar
from explorer.chrome.welcome_bar import WelcomeBar
from explorer.controller import Controller
from explorer.faults import log_path
from explorer.figures.export import export_source
from explorer.panels.registry import PANELS
from explorer.samples import Sample
from explorer.settings.schema import WindowSettings
from explorer.state.app_state import AppState, LayoutName, Notice
from explorer.state.errands import Errand
from explorer.state.moves import Move, add_notice, open_source, set_layout
from explorer.state.store import Store
from explorer.state.training import TrainingSnapshot
from explorer.theme.manager import ThemeChoice, ThemeManager
from explorer.theme.metrics import SPACE_2
from explorer.trainer import Trainer
from explorer.viewmodels.source_line import source_line
from explorer.widgets.notification_bar import NotificationBar

_FIRST_SIZE = 1440, 900
_LEAST_SIZE = 800, 600


class MainWindow(QMainWindow):
    """Everything the person sees. Commands reach it through explorer.actions.desk.Window."""

    first_painted = Signal()
    closed = Signal()

    def __init__(
        self,
        store: Store,
        controller: Controller,
        trainer: Trainer,
        themes: ThemeManager,
        samples: Sequence[Sample],
        remembered: WindowSettings,
    ) -> None:
        super().__init__()
        self._store = store
        self._controller = controller
        self._trainer = trainer
        self._themes = themes
        self._arrangements = dict(remembered.docks)
        self._is_painted = False
        self._has_picture = False
        self._hosts = {spec.key: (AskingHost if spec.query else PanelHost)(spec, themes) for spec in PANELS}
        self._desk = Desk(store=store, controller=controller, trainer=trainer, window=self)
        self._actions = ActionTable(self._desk, self)
        self._actions.fill(self.menuBar())
        self._questions = Questions(store, self)
        self._exporter = Exporter(store, controller, self)
        self._errands = Errands(store, controller)
        self._downloader = Downloader(controller, self._errands, self)
        self._leaving = Leaving(store, trainer, self)
        self._build_bars(samples)
        self._build_panels()
        self._wire()
        self.setMinimumSize(*_LEAST_SIZE)
        self.resize(QSize(*_FIRST_SIZE).boundedTo(self.screen().availableSize()))
        self.setAcceptDrops(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self.restoreGeometry(QByteArray.fromBase64(remembered.geometry.encode("ascii")))
        self._arrange(store.state.layout)
        self._show_state(store.state)

    # -- what commands ask for -----------------------------------------------------------------------------------------

    @property
    def questions(self) -> Questions:
        return self._questions

    def focus_text(self) -> None:
        self._top_bar.focus_text()

    def show_panel(self, key: str) -> None:
        if self._hosts[key].spec.area == "centre":
            self._centre.show_panel(key)
        else:
            self._docks.open(key)

    def toggle_panel(self, key: str) -> None:
        self._docks.toggle(key)

    def is_panel_open(self, key: str) -> bool:
        return self._docks.is_open(key)

    def show_layout(self, layout: LayoutName) -> None:
        self._store.settle(set_layout(layout))

    def show_concept(self, key: str) -> None:
        self.show_layout("learn")
        self._centre.show_panel(key)

    def reset_layout(self) -> None:
        self._docks.arrange(self._store.state.layout)

    def show_centre_tab(self, index: int) -> None:
        self._centre.show_tab(index)

    def zoom(self, step: int) -> None:
        if host := self._centre.current:
            host.panel.zoom(step)

    def show_export(self) -> None:
        whole, detail = self._hosts["matrix"].current_pictures
        source = export_source(self._store.state, whole, detail) if whole else None
        if source:
            self._exporter.open(source)
        else:
            text = self.tr("The matrix is not on screen yet: show it, then export.")
            self._store.settle(add_notice(Notice(severity="info", text=text)))

    def show_download(self) -> None:
        self._downloader.open()

    def run_errand(self, errand: Errand[Any]) -> None:
        self._errands.run(errand)

    def show_palette(self) -> None:
        CommandPalette(commands_now(self._desk), self._desk, self._themes, self).open_over(self)

    def show_about(self) -> None:
        QMessageBox.about(self, self.tr("About Transformer Explorer"), about_text())

    def show_log(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(log_path().parent)))

    # -- what the application asks for ---------------------------------------------------------------------------------

    @property
    def desk(self) -> Desk:
        """What commands act on."""
        return self._desk

    def host(self, key: str) -> PanelHost:
        """The host of a panel: its picture is what is on screen."""
        return self._hosts[key]

    @property
    def welcome_line(self) -> str:
        """What is said about the sample on screen; empty when none is."""
        return self._welcome.line

    def remembered(self) -> WindowSettings:
        """Where the window and its docks stand."""
        self._arrangements[self._store.state.layout] = self._docks.save()
        geometry = self.saveGeometry().toBase64().toStdString()
        return WindowSettings(geometry=geometry, docks=dict(self._arrangements))

    # -- Qt ------------------------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        if not self._is_painted:
            self._arrange_docks(self._store.state.layout)  # now that its size is known
        super().showEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._is_painted:
            self._is_painted = True
            self.first_painted.emit()

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self._leaving.may_close():
            event.ignore()
            return
        event.accept()
        self.closed.emit()

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: N802
        """Tab goes through the window as one reads it, whatever was added to it since the last time."""
        left, right, below = (self._docks.regions(area) for area in ("left", "right", "bottom"))
        set_reading_order([self._bars, *left, *self._centre.regions, *right, *below, self._status])
        return super().focusNextPrevChild(next)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        event.acceptProposedAction()
        try:
            self._store.apply(drop_move(paths, self._store.state))
        except CoreError as error:
            self._store.settle(add_notice(Notice(severity="warning", text=str(error))))

    # -- inside --------------------------------------------------------------------------------------------------------

    def _build_bars(self, samples: Sequence[Sample]) -> None:
        self._top_bar = TopBar(self._themes, open_button(self._actions, self), self)
        export = QToolButton(self, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        export.setDefaultAction(self._actions["export"])
        self._top_bar.add_button(export)
        self._top_bar.add_button(layout_buttons(self._actions, self))
        ways_on = {
            self.tr("Open your model"): self._actions["open_folder"],
            self.tr("Train one"): self._actions["layout_train"],
        }
        self._welcome = WelcomeBar(samples, ways_on, self)
        self._notifications = NotificationBar(self._themes, self)
        self._bars = rows = QWidget(self)
        column = QVBoxLayout(rows)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE_2)
        for bar in (self._top_bar, self._welcome, self._notifications):
            column.addWidget(bar)
        toolbar = QToolBar(self.tr("Model and text"), self, movable=False, floatable=False)
        toolbar.setObjectName("toolbar_top")
        toolbar.toggleViewAction().setEnabled(False)
        toolbar.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        toolbar.addWidget(rows)
        self.addToolBar(toolbar)
        self._status = StatusLine(self)
        self.statusBar().addWidget(self._status, 1)
        self.statusBar().setSizeGripEnabled(False)

    def _build_panels(self) -> None:
        for host in self._hosts.values():
            if host.spec.inside:
                self._hosts[host.spec.inside].panel.adopt(host.panel, host)
        outer = {key: host for key, host in self._hosts.items() if not host.spec.inside}
        centre = {key: host for key, host in outer.items() if host.spec.area == "centre"}
        self._centre = Centre(centre, self)
        self.setCentralWidget(self._centre)
        self._docks = Docks(self, {key: host for key, host in outer.items() if key not in centre})

    def _wire(self) -> None:
        for key, host in self._hosts.items():
            host.panel.intended.connect(self._on_intended)
            host.panel.noticed.connect(self._on_noticed)
            host.panel.command_requested.connect(self._on_command_requested)
            if isinstance(host, AskingHost):
                self._wire_answers(key, host)
        self._top_bar.intended.connect(self._on_intended)
        for bar in (self._top_bar, self._status):
            bar.command_requested.connect(self._on_command_requested)
        self._controller.progressed.connect(self._status.show_running)
        self._centre.tab_changed.connect(self._on_host_picture_changed)
        self._notifications.open_requested.connect(self._on_notifications_open_requested)
        self._trainer.advanced.connect(self._on_trainer_advanced)
        self._store.watch(self._on_store_changed)

    def _wire_answers(self, key: str, host: AskingHost) -> None:
        assert host.spec.query is not None
        self._controller.present(key, host.spec.query, host)
        if host.spec.detail is not None:
            self._controller.present(f"{key}.detail", host.spec.detail, DetailPresenter(host))
        host.visibility_changed.connect(self._on_host_visibility_changed)
        host.picture_changed.connect(self._on_host_picture_changed)
        host.stop_requested.connect(self._controller.cancel)

    def _arrange(self, layout: LayoutName) -> None:
        focused = self.focusWidget()
        if focused is not None and not self._bars.isAncestorOf(focused):
            self._centre.take_focus()  # first, or what is hidden passes it on to a field nobody chose
        self._centre.show_layout(layout)
        self._arrange_docks(layout)

    def _arrange_docks(self, layout: LayoutName) -> None:
        if not self._docks.restore(self._arrangements.get(layout, "")):
            self._docks.arrange(layout)
        self._show_picture_panel()

    def _show_picture_panel(self) -> None:
        """Open it where a picture is read, and there alone."""
        state = self._store.state
        if state.inputs.picture is None:
            self._docks.close("picture")
        elif state.layout == "explore":
            self._docks.open("picture")

    def _show_state(self, state: AppState) -> None:
        for host in self._hosts.values():
            host.show_state(state)
        for bar in (self._top_bar, self._status, self._welcome):
            bar.show_state(state)
        model = state.current_model
        self.setWindowTitle(model.info.name if model else QApplication.applicationDisplayName())  # Qt adds that itself
        self._actions.refresh()
        self._on_host_picture_changed()

    @Slot(object, object)
    def _on_store_changed(self, new: AppState, old: AppState) -> None:
        if new.theme != old.theme:
            self._themes.set_choice(ThemeChoice(new.theme))
        if new.layout != old.layout:
            self._arrangements[old.layout] = self._docks.save()
            self._arrange(new.layout)
        if new.model is not old.model and new.current_model:
            if new.current_model.info.refusal:
                self._centre.step_aside("tensors")  # all there is to see of it
            else:
                self._centre.step_back()
        if bool(new.inputs.picture) != bool(old.inputs.picture):
            self._show_picture_panel()
        for notice in new.notices[len(old.notices) :]:
            self._notifications.show_message(notice.severity, notice.text, notice.details, notice.opens)
        self._show_state(new)

    @Slot(object)
    def _on_trainer_advanced(self, snapshot: TrainingSnapshot) -> None:
        for host in self._hosts.values():
            host.panel.show_training(snapshot)

    @Slot(object)
    def _on_intended(self, move: Move) -> None:
        self._store.apply(move)

    @Slot(object)
    def _on_noticed(self, move: Move) -> None:
        self._store.settle(move)

    @Slot(object)
    def _on_notifications_open_requested(self, path: Path) -> None:
        self._store.apply(open_source(path))

    @Slot(str)
    def _on_command_requested(self, key: str) -> None:
        wanted = command(key)
        if wanted.is_enabled(self._desk):  # a button may be clicked once more before it is gone
            wanted.run(self._desk)

    @Slot(str, bool)
    def _on_host_visibility_changed(self, key: str, is_visible: bool) -> None:
        self._controller.set_visible(key, is_visible)
        if self._hosts[key].spec.detail is not None:
            self._controller.set_visible(f"{key}.detail", is_visible)

    @Slot()
    def _on_host_picture_changed(self) -> None:
        host = self._centre.current
        picture = host.on_screen if host else None
        self._status.show_source(source_line(self._store.state, picture))
        if host is not None and picture is not None and not self._has_picture:
            self._has_picture = True
            if not isinstance(self.focusWidget(), QLineEdit):
                host.panel.take_focus()
