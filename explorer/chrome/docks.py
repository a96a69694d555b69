"""Docks around the centre: where each panel stands in each layout, kept and brought back."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from PySide6.QtCore import QByteArray, Qt, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTabBar, QWidget

from explorer.chrome.panel_host import PanelHost
from explorer.panels.panel import Area
from explorer.state.app_state import LayoutName
from explorer.widgets.panel_frame import PanelFrame

_SIDES: dict[Area, Qt.DockWidgetArea] = {
    "left": Qt.DockWidgetArea.LeftDockWidgetArea,
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
}
_WIDTHS = {"left": (272, 0.18, 440), "right": (272, 0.16, 360)}
"""Width of a side: at least, as a share of the window, at most. All heads fit the left one, sentences the right one."""
_LARGEST_SHARE = 0.22
"""Of a small window, for a side: the centre is looked at most."""
_STATE_VERSION = 1
_SHARES = [3, 2, 2, 2]
"""How docks of one side share its height: the first is looked at most."""


class Docks:
    """One dock a panel, in the window it is given. Left and right docks reach down to the bottom ones."""

    def __init__(self, window: QMainWindow, hosts: Mapping[str, PanelHost]) -> None:
        self._window = window
        self._hosts = hosts
        self._docks = {key: self._dock(host) for key, host in hosts.items()}
        window.setDockNestingEnabled(True)
        window.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.BottomDockWidgetArea)
        window.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.BottomDockWidgetArea)

    def regions(self, area: Area) -> list[QWidget]:
        """The docks on one side in reading order: the title row of each, then its panel."""
        side = _SIDES[area]
        docks = [dock for dock in self._docks.values() if self._window.dockWidgetArea(dock) == side]
        docks = [dock for dock in docks if not dock.isFloating()]  # which are windows of their own
        return [part for dock in docks for part in (dock.title_row, dock.host)]

    def is_open(self, key: str) -> bool:
        return not self._docks[key].isHidden()

    def open(self, key: str) -> None:
        """Show a panel, before those that share its place; one with a place of its own gets as much room as others."""
        was_open, dock = self.is_open(key), self._docks[key]
        dock.show()
        dock.raise_()
        if not was_open and not self._window.tabifiedDockWidgets(dock):
            area = self._hosts[key].spec.area
            shown = [self._docks[other] for other in self._docks if self._is_shown(other, area)]
            self._window.resizeDocks(shown, [1] * len(shown), Qt.Orientation.Vertical)

    def close(self, key: str) -> None:
        self._docks[key].close()

    def toggle(self, key: str) -> None:
        """Close a panel that is on screen; show one that is closed, or that stands behind another."""
        if self._docks[key].is_on_screen:
            self._docks[key].close()
        else:
            self.open(key)

    def arrange(self, layout: LayoutName) -> None:
        """Put every panel in its first place."""
        for key, dock in self._docks.items():
            self._window.removeDockWidget(dock)
            dock.setFloating(False)
            self._window.addDockWidget(_SIDES[self._hosts[key].spec.area], dock)
            dock.setVisible(layout in self._hosts[key].spec.layouts)
        for key, dock in self._docks.items():
            if beside := self._hosts[key].spec.beside:
                self._window.tabifyDockWidget(self._docks[beside], dock)
        for area in ("left", "right"):
            shown = [dock for key, dock in self._docks.items() if self._is_in(key, area, layout)]
            least, share, most = _WIDTHS[area]
            width = round(min(max(least, share * self._window.width()), most, _LARGEST_SHARE * self._window.width()))
            self._window.resizeDocks(shown, [width] * len(shown), Qt.Orientation.Horizontal)
            self._window.resizeDocks(shown, _SHARES[: len(shown)], Qt.Orientation.Vertical)
        below = [dock for key, dock in self._docks.items() if self._is_in(key, "bottom", layout)]
        self._settle_tabs()
        self._window.resizeDocks(below, [dock.minimumSizeHint().height() for dock in below], Qt.Orientation.Vertical)

    def save(self) -> str:
        """The arrangement as text, for `restore`."""
        return base64.b64encode(self._window.saveState(_STATE_VERSION).data()).decode("ascii")

    def restore(self, saved: str) -> bool:
        """Bring an arrangement back; False when it is none of ours."""
        try:
            state = base64.b64decode(saved, validate=True)
        except (binascii.Error, ValueError):
            return False
        is_ours = bool(saved) and self._window.restoreState(QByteArray(state), _STATE_VERSION)
        self._settle_tabs()
        return is_ours

    def _settle_tabs(self) -> None:
        """Tab passes by the bars of docks in one place: Qt keeps them, out of sight, where only one is open."""
        for bar in self._window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
            bar.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def _is_in(self, key: str, area: str, layout: LayoutName) -> bool:
        spec = self._hosts[key].spec
        return spec.area == area and layout in spec.layouts

    def _is_shown(self, key: str, area: Area) -> bool:
        return self._hosts[key].spec.area == area and self.is_open(key) and not self._docks[key].isFloating()

    def _dock(self, host: PanelHost) -> _Dock:
        dock = _Dock(host, self._window)
        dock.setObjectName(f"dock_{host.spec.key}")
        dock.setTitleBarWidget(dock.title_row)
        dock.setWidget(host)
        return dock


class _Dock(QDockWidget):
    """A dock that knows whether it is on screen: one behind another counts as shown by Qt, and shall ask nothing."""

    def __init__(self, host: PanelHost, window: QMainWindow) -> None:
        super().__init__(host.spec.title, window)
        self.is_on_screen = False
        self.host = host
        self._window = window
        self.title_row = _TitleRow(host, self)
        host.room_left.connect(self._on_host_room_left)
        self.visibilityChanged.connect(self._on_visibility_changed)

    @Slot()
    def _on_host_room_left(self) -> None:
        """Give the room back, unless another panel shares it."""
        if not self.isFloating() and not self._window.tabifiedDockWidgets(self):
            self._window.resizeDocks([self], [self.minimumSizeHint().height()], Qt.Orientation.Vertical)

    @Slot(bool)
    def _on_visibility_changed(self, is_visible: bool) -> None:
        self.is_on_screen = is_visible
        self.host.visibility_changed.emit(self.host.spec.key, is_visible)


class _TitleRow(PanelFrame):
    """The panel's title with its own controls; moving it moves the dock."""

    def __init__(self, host: PanelHost, dock: QDockWidget) -> None:
        super().__init__(host.spec.title, dock)
        self._dock = dock
        for control in host.panel.controls():
            self.add_control(control)
        floating, closing = QAction(self.tr("Float or dock"), self), QAction(self.tr("Close"), self)
        floating.triggered.connect(self._on_floating_triggered)
        closing.triggered.connect(dock.close)
        for action in (floating, closing):
            self.add_menu_action(action)

    @Slot()
    def _on_floating_triggered(self) -> None:
        self._dock.setFloating(not self._dock.isFloating())
