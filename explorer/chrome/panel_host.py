"""One panel with what every panel needs: its four states, its answer, the view function between the two."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, Signal, Slot
from PySide6.QtGui import QHideEvent, QPalette, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from explorer.actions.commands import command
from explorer.panels.panel import Panel, PanelSpec
from explorer.state.app_state import AppState
from explorer.state.outcome import Problem
from explorer.theme.manager import ThemeManager
from explorer.viewmodels.guidance import no_guidance
from explorer.widgets.state_page import StatePage


class PanelHost(QWidget):
    """A panel, and the news whether it is on screen."""

    visibility_changed = Signal(str, bool)
    """The key of the panel, and whether it is on screen."""
    picture_changed = Signal()
    room_left = Signal()
    """The panel is at its largest, and there is more room than that."""

    def __init__(self, spec: PanelSpec, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.spec = spec
        self.panel: Panel = spec.factory(themes)
        self.setBackgroundRole(QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._build(themes)

    @property
    def picture(self) -> Any:
        """The whole picture on screen, None when there is none; a detail laid over it does not count."""
        return None

    @property
    def on_screen(self) -> Any:
        """The picture drawn last: the detail where one is laid over, else the whole."""
        return None

    @property
    def current_pictures(self) -> tuple[Any, Any]:
        """The whole picture and the detail laid over it, each None where there is none or it is being renewed."""
        return None, None

    def show_state(self, state: AppState) -> None:
        """Tell the panel."""
        self.panel.show_state(state)

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.LayoutRequest and self.panel.maximumHeight() < self.height():
            self.room_left.emit()
        return super().event(event)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.visibility_changed.emit(self.spec.key, True)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.visibility_changed.emit(self.spec.key, False)

    def _build(self, themes: ThemeManager) -> None:
        self._layout.addWidget(self.panel)


class AskingHost(PanelHost):
    """A panel that shows answers, in the four states there are; see explorer.controller.Presenter."""

    stop_requested = Signal()

    def _build(self, themes: ThemeManager) -> None:
        self._state = AppState()
        self._result: Any = None
        self._detail: Any = None
        self._laid_over: Any = None
        self._drawn_with: object = None
        self._picture: Any = None
        self._action = ""
        self._waiting = ""
        self._page = StatePage(themes, self.panel, self)
        self._page.action_triggered.connect(self._on_page_action_triggered)
        self._page.cancel_requested.connect(self.stop_requested)
        self._layout.addWidget(self._page)

    @property
    def picture(self) -> Any:
        return self._picture

    @property
    def current_pictures(self) -> tuple[Any, Any]:
        if self._waiting or not self.isVisible() or self._picture is None:
            return None, None
        return self._picture, self._laid_over

    @property
    def on_screen(self) -> Any:
        return self._laid_over or self._picture

    def show_state(self, state: AppState) -> None:
        """Draw the same answer anew where it is to look different, and tell the panel.

        While hidden or waiting the answer may belong to an older state: it is drawn again once it is shown again.
        """
        self._state = state
        if self._picture is not None and self._looks_different and self.isVisible() and not self._waiting:
            self._draw()
        self.panel.show_state(state)

    def show_nothing(self) -> None:
        self._waiting = ""
        self._forget()
        text, self._action = self.spec.guidance(self._state)
        action, tip = self._button()
        self._page.show_empty(text or self.spec.tooltip, action, tip=tip)

    def show_waiting(self, *, is_own: bool) -> None:
        waiting = "own" if is_own else "others"
        if waiting == self._waiting:
            return
        self._waiting = waiting
        if self._picture is not None:
            self._page.show_content()
            self.panel.set_stale(True)
        elif is_own or self.spec.guidance is not no_guidance:
            self._page.show_working(self.tr("Working"))
        else:
            self._page.show_empty("")

    def show_progress(self, fraction: float | None) -> None:
        self._page.show_progress(fraction)

    def show_result(self, result: Any) -> None:
        is_new = result is not self._result
        if not is_new and not self._waiting and not self._looks_different:
            return
        self._waiting = ""
        if is_new:
            self._result, self._detail, self._laid_over = result, None, None
        if is_new or self._looks_different:
            self._draw()
        self.panel.set_stale(False)
        self._page.show_content()

    def show_problem(self, problem: Problem) -> None:
        self._waiting = ""
        self._forget()
        self._action = problem.remedy
        action, tip = self._button()
        what = self.tr("{what}: a fault of this program").format(what=problem.what) if problem.is_bug else problem.what
        self._page.show_error(what, problem.message, details=problem.details, action=action, tip=tip)

    def show_blocked(self, problem: Problem) -> None:
        if self.spec.guidance is no_guidance:
            self.show_nothing()
        else:
            self.show_problem(problem)

    def lay_over(self, detail: Any) -> None:
        """Draw the answer of the detail query over the whole picture; None takes it away."""
        if detail is self._detail or self._picture is None:
            return
        self._detail = detail
        if detail is None:
            self._laid_over = None
            self.panel.draw(self._picture)
        else:
            self._draw_detail()
        self.picture_changed.emit()

    def _button(self) -> tuple[str, str]:
        """Title and tooltip of the command that may help, empty where there is none."""
        if not self._action:
            return "", ""
        chosen = command(self._action)
        return chosen.title, chosen.tooltip

    @property
    def _looks_different(self) -> bool:
        """Whether the same answer is to be drawn anew."""
        return self.spec.look(self._state) != self._drawn_with

    def _draw(self) -> None:
        assert self.spec.view is not None
        self._drawn_with = self.spec.look(self._state)
        self._picture = self.spec.view(self._result, self._state)
        self.panel.draw(self._picture)
        if self._detail is not None:
            self._draw_detail()
        self.picture_changed.emit()

    def _draw_detail(self) -> None:
        assert self.spec.detail_view is not None
        self._laid_over = self.spec.detail_view(self._detail, self._picture, self._state)
        self.panel.draw(self._laid_over)

    def _forget(self) -> None:
        if self._picture is not None:
            self._result = self._detail = self._laid_over = self._picture = None
            self.picture_changed.emit()

    @Slot()
    def _on_page_action_triggered(self) -> None:
        self.panel.command_requested.emit(self._action)


class DetailPresenter:
    """Lays the answers of a panel's detail query over the host's picture."""

    def __init__(self, host: AskingHost) -> None:
        self._host = host

    def show_nothing(self) -> None:
        self._host.lay_over(None)

    def show_waiting(self, *, is_own: bool) -> None:
        """The last detail stays on screen: it is still true, only elsewhere than where one looks now."""

    def show_progress(self, fraction: float | None) -> None:
        """The whole picture is there to look at meanwhile."""

    def show_result(self, result: Any) -> None:
        self._host.lay_over(result)

    def show_problem(self, problem: Problem) -> None:
        self._host.show_problem(problem)

    def show_blocked(self, problem: Problem) -> None:
        """The host says it, or shows what it can without a model."""
        self._host.lay_over(None)
