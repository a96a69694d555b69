"""Where each head's tile lies in a mosaic, in whole pixels."""

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRect

Head = tuple[int, int]
"""(layer, head)"""
BAR = 3
"""Height of the bar below a tile."""
_LARGEST_TILE = 160
_BARS_FROM = 16
"""Pixels from tile to tile from which bars can be told apart."""


@dataclass(frozen=True, kw_only=True)
class MosaicLayout:
    """Square tiles of one size with gaps of one size: layers downward, heads to the right."""

    n_layers: int
    n_heads: int
    left: int
    top: int
    tile: int
    gap: int
    bar_room: int
    """Height below each tile that its bar takes with its distance; 0 for none."""

    @classmethod
    def fitting(cls, shape: tuple[int, int], area: QRect, *, has_bars: bool) -> "MosaicLayout":
        """The largest tiles with which all (n_layers, n_heads) fit the area."""
        n_layers, n_heads = shape
        pitch = min(area.width() / n_heads, area.height() / n_layers)
        bar_room = BAR + 1 if has_bars and pitch >= _BARS_FROM else 0
        gap = 1 if pitch < 12 else 2 if pitch < 32 else 4
        pitch = min((area.width() + gap) / n_heads, (area.height() + gap) / n_layers - bar_room)
        return cls(
            n_layers=n_layers,
            n_heads=n_heads,
            left=area.left(),
            top=area.top(),
            tile=min(max(1, int(pitch) - gap), _LARGEST_TILE),
            gap=gap,
            bar_room=bar_room,
        )

    @property
    def pitch(self) -> tuple[int, int]:
        """(down, right) distance from tile to tile."""
        return self.tile + self.gap + self.bar_room, self.tile + self.gap

    @property
    def area(self) -> QRect:
        """All tiles and bars together."""
        down, right = self.pitch
        return QRect(self.left, self.top, self.n_heads * right - self.gap, self.n_layers * down - self.gap)

    def tile_rect(self, layer: int, head: int) -> QRect:
        down, right = self.pitch
        return QRect(self.left + head * right, self.top + layer * down, self.tile, self.tile)

    def head_at(self, point: QPointF) -> Head | None:
        """The head under a pixel, its bar and half the gap around it included; None outside."""
        down, right = self.pitch
        layer = int((point.y() - self.top + self.gap / 2) // down)
        head = int((point.x() - self.left + self.gap / 2) // right)
        return (layer, head) if 0 <= layer < self.n_layers and 0 <= head < self.n_heads else None
