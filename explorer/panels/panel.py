"""What a panel is: a widget that is told the state and a picture, and says what the person wants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer.state.app_state import AppState, LayoutName
from explorer.state.queries import QueryFunction
from explorer.state.training import TrainingSnapshot
from explorer.theme.manager import ThemeManager
from explorer.viewmodels.guidance import GuidanceFunction, no_guidance

Area: TypeAlias = Literal["left", "centre", "right", "bottom"]


class Panel(QWidget):
    """Told, never asking: it does not know the store, the engine or another panel."""

    intended = Signal(object)
    """A Move of explorer.state.moves that the person wants; undo takes it back."""
    noticed = Signal(object)
    """A Move in passing: the cell under the mouse, the part on screen."""
    command_requested = Signal(str)
    """The key of a command of explorer.actions, for a button that does the same."""

    def show_state(self, state: AppState) -> None:
        """The state has changed: show the selection, offer what can be chosen."""

    def show_training(self, snapshot: TrainingSnapshot) -> None:
        """A training has come further; up to 30 times a second, on screen or not."""

    def draw(self, picture: Any) -> None:
        """Show what the panel's view function made of an answer."""

    def set_stale(self, is_stale: bool) -> None:
        """The picture is old while the next is computed."""

    def zoom(self, step: int) -> None:
        """Show the picture closer (1), from further away (-1), or all of it (0)."""

    def take_focus(self) -> None:
        """Give the keyboard to what the panel is looked at for."""
        self.setFocus()

    def adopt(self, panel: Panel, place: QWidget) -> None:
        """Give room to a panel that stands inside this one, in the place that shows its states."""

    def controls(self) -> Sequence[QWidget]:
        """The few controls of its title row, in reading order."""
        return ()


def display(state: AppState) -> object:
    """All that most views read of the state."""
    return state.display


@dataclass(frozen=True, kw_only=True)
class PanelSpec:
    """One row of PANELS.

    `query` asks what the panel shows and `view(result, state)` turns the answer into its picture; both pure. A panel
    without a query shows the state alone. The view is asked anew when `look(state)` changes, while the answer is that
    to the state. `detail` asks for a part to lay over the picture, and
    `detail_view(result, picture, state)` turns it into one like the picture. `guidance(state)` says what to do when
    there is nothing to ask. In `layouts` it is open at first, a tab of the panel `beside`; or it stands `inside` a
    panel, which adopts it.
    """

    key: str
    title: str
    icon: str
    area: Area
    layouts: tuple[LayoutName, ...]
    factory: Callable[[ThemeManager], Panel]
    query: QueryFunction | None = None
    view: Callable[[Any, AppState], Any] | None = None
    look: Callable[[AppState], object] = display
    detail: QueryFunction | None = None
    detail_view: Callable[[Any, Any, AppState], Any] | None = None
    beside: str = ""
    inside: str = ""
    shortcut: str = ""
    tooltip: str = ""
    guidance: GuidanceFunction = no_guidance


def as_it_is(result: Any, state: AppState) -> Any:
    """The view of a panel that draws the answer itself."""
    return result
