"""Colour maps of attention by the names people read."""

from __future__ import annotations

from explorer.state.app_state import ColormapName

COLORMAP_LABELS: dict[ColormapName, str] = {
    "viridis": "Viridis",
    "cividis": "Cividis",
    "magma": "Magma",
    "grey": "Grey",
}
