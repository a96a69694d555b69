"""What is remembered between two starts, as typed frozen records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from explorer.state.app_state import ColormapName, LayoutName, ScaleName, ThemeName
from explorer.state.export import ExportChoices

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class WindowSettings:
    """Place of the window and of its docks: Qt's own byte strings in base64, opaque to us."""

    geometry: str = ""
    docks: dict[LayoutName, str] = field(default_factory=dict[LayoutName, str])


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything the application remembers."""

    version: Literal[1] = VERSION
    theme: ThemeName = "system"
    layout: LayoutName = "explore"
    scale: ScaleName = "linear"
    colormap: ColormapName = "viridis"
    export: ExportChoices = field(default_factory=ExportChoices)
    recent: tuple[str, ...] = ()
    """Paths opened last, newest first."""
    window: WindowSettings = WindowSettings()
