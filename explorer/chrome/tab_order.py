"""Tab goes through the window as one reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter, QWidget

_DIRECT = Qt.FindChildOption.FindDirectChildrenOnly


def set_reading_order(regions: Sequence[QWidget]) -> None:
    """Let Tab go through one region after the other, and through each in the order in which it was filled."""
    stops = [stop for region in regions for stop in _stops(region)]
    for first, second in pairwise(stops):
        QWidget.setTabOrder(first, second)


def _stops(widget: QWidget) -> Iterator[QWidget]:
    """What takes the keyboard within a widget.

    WORKAROUND(qt-6.11): found by their parents. PySide takes what nextInFocusChain, focusProxy or an item of a layout
    returns for a part of what was asked, and deletes the one with the other.
    """
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
        yield widget
    parts = widget.findChildren(QWidget, options=_DIRECT)
    holder = widget if isinstance(widget, QSplitter) else widget.layout()
    places = {part: holder.indexOf(part) for part in parts} if holder is not None else {}
    for part in sorted(parts, key=lambda part: (places.get(part, 0) < 0, places.get(part, 0))):  # the unplaced last
        if not part.isWindow():  # as menus are
            yield from _stops(part)
