"""What a command may act on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from explorer.actions.questions import Questions
from explorer.controller import Controller
from explorer.state.app_state import AppState, LayoutName
from explorer.state.errands import Errand
from explorer.state.store import Store
from explorer.trainer import Trainer


class Window(Protocol):
    """What commands ask of the window: questions, focus, layouts. No command knows more of it."""

    @property
    def questions(self) -> Questions: ...
    def focus_text(self) -> None: ...
    def toggle_panel(self, key: str) -> None: ...
    def is_panel_open(self, key: str) -> bool: ...
    def show_layout(self, layout: LayoutName) -> None: ...
    def reset_layout(self) -> None: ...
    def show_centre_tab(self, index: int) -> None: ...
    def zoom(self, step: int) -> None:
        """Closer (1), further (-1) or everything (0) in the picture at the centre."""
        ...

    def show_export(self) -> None: ...
    def show_concept(self, key: str) -> None:
        """A centre panel in the Learn layout."""
        ...

    def show_download(self) -> None:
        """Ask for a model of the Hub, then run the errand `download_errand` makes of it."""
        ...

    def run_errand(self, errand: Errand[Any]) -> None:
        """Have work done beside everything else; its answer changes the state."""
        ...

    def show_palette(self) -> None: ...
    def show_about(self) -> None: ...
    def show_log(self) -> None: ...
    def close(self) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class Desk:
    """The four things there are to act on."""

    store: Store
    controller: Controller
    trainer: Trainer
    window: Window

    @property
    def state(self) -> AppState:
        return self.store.state
