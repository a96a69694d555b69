"""Tab goes through the window as one reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget


def set_reading_order(regions: Sequence[QWidget]) -> None:
    """Let Tab go through one region after the other; within a region the order stays as it was."""
    stops = [stop for region in regions for stop in _stops(region)]
    for first, second in pairwise(stops):
        QWidget.setTabOrder(first, second)


def _stops(region: QWidget) -> Iterator[QWidget]:
    """What takes the keyboard in a region, or hands it to a part of its own, in the present order."""
    widget = region
    while True:
        if widget is region or region.isAncestorOf(widget):
            proxy = widget.focusProxy()
            takes_focus = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
            if widget.isAncestorOf(proxy) if proxy else takes_focus:
                yield widget
        following = widget.nextInFocusChain()
        if following is None or following is region:
            return
        widget = following
