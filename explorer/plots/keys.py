"""Keys that several plots understand."""

from typing import Final

from PySide6.QtCore import Qt

ARROWS: Final[dict[int, tuple[int, int]]] = {
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
}
"""Key -> (down, right)."""
