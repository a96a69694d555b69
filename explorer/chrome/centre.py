"""The centre of the window: one panel at a time, chosen by tabs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, Signal, Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QLabel, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from explorer.chrome.panel_host import PanelHost
from explorer.state.app_state import LayoutName
from explorer.theme.metrics import SPACE_1, SPACE_2, SPACE_3
from explorer.widgets.flow_layout import FlowLayout


class Centre(QWidget):
    """Tabs of the layout's centre panels; below them the controls of the chosen one, then the panel."""

    tab_changed = Signal()

    def __init__(self, hosts: Mapping[str, PanelHost], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setBackgroundRole(QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self._hosts = dict(hosts)
        self._keys: list[str] = []
        self._left: str | None = None
        """What `step_aside` left, until the person chooses a tab."""
        self._tabs = QTabBar(self, drawBase=False, expanding=False)
        self._tabs.setAccessibleName(self.tr("Views"))
        self._tabs.currentChanged.connect(self._on_tabs_current_changed)
        self._pages = QStackedWidget(self)
        self._all_pages = [_Page(host) for host in hosts.values()]
        for page in self._all_pages:
            self._pages.addWidget(page)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._tabs)
        layout.addWidget(self._pages, 1)

    @property
    def current(self) -> PanelHost | None:
        """The panel on screen."""
        index = self._tabs.currentIndex()
        return self._hosts[self._keys[index]] if 0 <= index < len(self._keys) else None

    @property
    def regions(self) -> list[QWidget]:
        """Its parts in reading order: the tabs, then of each panel its controls and itself."""
        return [self._tabs, *(part for page in self._all_pages for part in (page.controls, page.host))]

    def show_layout(self, layout: LayoutName) -> None:
        """Offer the centre panels of a layout, the first on screen."""
        self._tabs.blockSignals(True)
        while self._tabs.count():
            self._tabs.removeTab(0)
        self._keys = [key for key, host in self._hosts.items() if layout in host.spec.layouts]
        for number, key in enumerate(self._keys, start=1):
            self._tabs.addTab(self._hosts[key].spec.title)
            self._tabs.setTabToolTip(number - 1, f"{self._hosts[key].spec.tooltip} ({number})")
        self._tabs.blockSignals(False)
        self._on_tabs_current_changed(self._tabs.currentIndex())

    def show_tab(self, index: int) -> None:
        """Show the tab of that number, counted from 0; nothing when there is none."""
        if index < len(self._keys):
            self._tabs.setCurrentIndex(index)

    def show_panel(self, key: str) -> None:
        """Show one of the panels that this layout has."""
        if key in self._keys:
            self._tabs.setCurrentIndex(self._keys.index(key))

    def take_focus(self) -> None:
        """Give the keyboard to the panel on screen, or to the tabs while it has only something to say.

        Never to a field: the next key may be a shortcut, which a field would take for its own.
        """
        self._tabs.setFocus()
        if self.current is not None:
            self.current.panel.take_focus()

    def step_aside(self, key: str) -> None:
        """Show a panel because it is all there is to see; `step_back` undoes it."""
        left = self._keys[self._tabs.currentIndex()] if self._keys else key
        if key in self._keys and left != key:
            self.show_panel(key)
            self._left = left

    def step_back(self) -> None:
        """Show what `step_aside` left, unless the person has chosen a tab since."""
        if self._left is not None:
            self.show_panel(self._left)

    @Slot(int)
    def _on_tabs_current_changed(self, index: int) -> None:
        self._left = None
        if 0 <= index < len(self._keys):
            focused = self.window().focusWidget()
            has_focus = focused is not None and self._pages.isAncestorOf(focused)
            self._pages.setCurrentIndex(list(self._hosts).index(self._keys[index]))
            if has_focus:
                self.take_focus()  # the stack has given it to a field of the new page
        self.tab_changed.emit()


class _Page(QWidget):
    """A panel below its controls."""

    def __init__(self, host: PanelHost) -> None:
        super().__init__()
        self.host = host
        self.controls = _ControlRow(host.panel.controls(), self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.controls)
        layout.addWidget(host, 1)


class _ControlRow(QWidget):
    """Controls from left to right, in a second line where one is too short.

    The names beside them give way first: tooltips say them too.
    """

    def __init__(self, controls: Sequence[QWidget], parent: QWidget) -> None:
        super().__init__(parent)
        self._controls = tuple(controls)
        row = FlowLayout(self)
        row.setContentsMargins(SPACE_3, SPACE_2, SPACE_3, 0)
        row.setSpacing(SPACE_2)
        for widget in controls:
            row.addWidget(widget)
            if isinstance(widget, QLabel):
                widget.setContentsMargins(SPACE_1, 0, 0, 0)  # closer to what it names than to what stands before it

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest):
            self._show_names()
        return super().event(event)

    def _show_names(self) -> None:
        names = [widget for widget in self._controls if isinstance(widget, QLabel)]
        shown = [widget for widget in self._controls if widget in names or not widget.isHidden()]
        needed = sum(widget.sizeHint().width() + SPACE_2 for widget in shown) + 2 * SPACE_3
        for name in names:
            name.setVisible(needed <= self.width())
