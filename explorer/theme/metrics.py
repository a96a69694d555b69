"""Distances in logical pixels: steps of four."""

SPACE_1 = 4
SPACE_2 = 8
SPACE_3 = 12
SPACE_4 = 16
SPACE_6 = 24
TITLE_ROW = 28
RADIUS = 4
ICON = 16
FRAME_MS = 16
"""At most one repaint or range signal in this time."""
PATIENCE_MS = 300
"""Work shorter than this is not announced."""
