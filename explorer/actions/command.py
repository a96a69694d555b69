"""What a command is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from explorer.actions.desk import Desk

MenuName: TypeAlias = Literal["File", "Edit", "View", "Model", "Train", "Learn", "Help"]


def _always(desk: Desk) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Command:
    """One row of the table behind menus, shortcuts and the command palette.

    `menu` and `group` place it: groups are divided by lines, in the order they first appear; a `submenu` gathers rows.
    `tooltip` is one sentence. `run` does it on the desk; a command with `is_checked` shows a mark while that is true.
    `shortcut` may name several, divided by a bar.
    """

    key: str
    title: str
    menu: MenuName
    tooltip: str
    run: Callable[[Desk], None]
    group: str = ""
    submenu: str = ""
    shortcut: str = ""
    icon: str = ""
    is_enabled: Callable[[Desk], bool] = _always
    is_checked: Callable[[Desk], bool] | None = None
