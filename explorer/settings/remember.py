"""Which part of the state is remembered."""

from __future__ import annotations

from pathlib import Path

from explorer.settings.schema import Settings, WindowSettings
from explorer.state.app_state import AppState, Display


def state_of(settings: Settings) -> AppState:
    """The state to start with."""
    return AppState(
        theme=settings.theme,
        display=Display(scale=settings.scale, colormap=settings.colormap),
        layout=settings.layout,
        export=settings.export,
        recent=tuple(path for path in map(Path, settings.recent) if path.is_absolute()),  # once some were not
    )


def settings_of(state: AppState, window: WindowSettings) -> Settings:
    """What to remember of a state and of where its window stands."""
    return Settings(
        theme=state.theme,
        scale=state.display.scale,
        colormap=state.display.colormap,
        layout=state.layout,
        export=state.export,
        recent=tuple(str(path) for path in state.recent),
        window=window,
    )
