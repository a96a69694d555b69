"""What a command is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from explorer.state.app_state import AppState

if TYPE_CHECKING:
    from explorer.actions.desk import Desk

MenuName: TypeAlias = Literal["File", "Edit", "View", "Model", "Train", "Learn", "Help"]


@dataclass(frozen=True, kw_only=True)
class Command:
    """One row of the table behind menus, shortcuts and the command palette.

    `menu` and `group` place it: groups are divided by lines, in the order they first appear; a `submenu` gathers rows.
    `run` does it on the desk it is given; `is_enabled` and `is_checked` read the state. A command with `is_checked`
    shows a mark. `tooltip` is one sentence.
    """

    key: str
    title: str
    menu: MenuName
    run: Callable[[Desk], None]
    tooltip: str
    group: str = ""
    submenu: str = ""
    shortcut: str = ""
    icon: str = ""
    is_enabled: Callable[[AppState], bool] = lambda state: True
    is_checked: Callable[[AppState], bool] | None = None
