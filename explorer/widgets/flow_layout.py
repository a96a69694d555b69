"""Widgets from left to right, in as many lines as they need."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class FlowLayout(QLayout):
    """Each widget at the width it hints, level with those of its line; the height follows from the width."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self._heights: dict[int, int] = {}
        """Height for each width, until something changes: Qt asks for it with every layout of the window."""

    def addItem(self, item: QLayoutItem, /) -> None:  # noqa: N802
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int, /) -> QLayoutItem | None:  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int, /) -> QLayoutItem | None:  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:  # noqa: N802
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def invalidate(self) -> None:
        self._heights = {}
        super().invalidate()

    def heightForWidth(self, width: int, /) -> int:
        if width not in self._heights:
            self._heights[width] = self._height(width)
        return self._heights[width]

    def _height(self, width: int) -> int:
        margins = self.contentsMargins()
        lines = self._lines(width - margins.left() - margins.right())
        heights = [max(item.sizeHint().height() for item in line) for line in lines]
        return sum(heights) + self.spacing() * max(0, len(heights) - 1) + margins.top() + margins.bottom()

    def sizeHint(self) -> QSize:
        """All in one line."""
        margins = self.contentsMargins()
        width = self._width(self._shown()) + margins.left() + margins.right()
        return QSize(width, self.heightForWidth(width))

    def minimumSize(self) -> QSize:  # noqa: N802
        """The widest alone."""
        margins = self.contentsMargins()
        hints = [item.sizeHint() for item in self._shown()]
        width, height = (max((size(hint) for hint in hints), default=0) for size in (QSize.width, QSize.height))
        return QSize(width + margins.left() + margins.right(), height + margins.top() + margins.bottom())

    def setGeometry(self, rect: QRect, /) -> None:  # noqa: N802
        super().setGeometry(rect)
        room = rect.marginsRemoved(self.contentsMargins())
        top = room.top()
        for line in self._lines(room.width()):
            height, left = max(item.sizeHint().height() for item in line), room.left()
            for item in line:
                size = item.sizeHint()
                item.setGeometry(QRect(QPoint(left, top + (height - size.height()) // 2), size))
                left += size.width() + self.spacing()
            top += height + self.spacing()

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _width(self, items: list[QLayoutItem]) -> int:
        return sum(item.sizeHint().width() for item in items) + self.spacing() * max(0, len(items) - 1)

    def _lines(self, width: int) -> list[list[QLayoutItem]]:
        lines: list[list[QLayoutItem]] = []
        for item in self._shown():
            if lines and self._width([*lines[-1], item]) <= width:
                lines[-1].append(item)
            else:
                lines.append([item])
        return lines
