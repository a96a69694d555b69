"""The one table of commands: menus, toolbar, shortcuts and palette are made from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import get_args

from explorer.actions.command import Command, MenuName
from explorer.actions.desk import Desk
from explorer.actions.edit_commands import EDIT_COMMANDS
from explorer.actions.file_commands import (
    FILE_COMMANDS,
    FROM_CACHE,
    SAVE_AS,
    cached_commands,
    list_cache,
    recent_commands,
    sample_commands,
    save_as_commands,
)
from explorer.actions.help_commands import HELP_COMMANDS
from explorer.actions.learn_commands import LEARN_COMMANDS
from explorer.actions.model_commands import MODEL_COMMANDS, site_commands
from explorer.actions.train_commands import TRAIN_COMMANDS
from explorer.actions.view_commands import VIEW_COMMANDS

MENUS: tuple[MenuName, ...] = get_args(MenuName)
COMMANDS: tuple[Command, ...] = (
    *FILE_COMMANDS,
    *EDIT_COMMANDS,
    *VIEW_COMMANDS,
    *MODEL_COMMANDS,
    *TRAIN_COMMANDS,
    *LEARN_COMMANDS,
    *HELP_COMMANDS,
)


@dataclass(frozen=True, kw_only=True)
class ChangingRows:
    """The rows of a submenu that depend on the state. `look` has what they tell looked up, before they are shown."""

    rows: Callable[[Desk], tuple[Command, ...]]
    look: Callable[[Desk], None] = field(default=lambda desk: None)


CHANGING_COMMANDS: dict[tuple[str, str], ChangingRows] = {
    ("File", "Open recent"): ChangingRows(rows=recent_commands),
    ("File", FROM_CACHE): ChangingRows(rows=cached_commands, look=list_cache),
    ("File", "Samples"): ChangingRows(rows=sample_commands),
    ("File", SAVE_AS): ChangingRows(rows=save_as_commands),
    ("Model", "Site"): ChangingRows(rows=site_commands),
}
"""By (menu, submenu)."""


def command(key: str) -> Command:
    """The command of that key. Raises KeyError when there is none."""
    return _BY_KEY[key]


def commands_now(desk: Desk) -> tuple[Command, ...]:
    """Every command there is at this moment, for the palette; what changes is looked up for the next time."""
    for changing in CHANGING_COMMANDS.values():
        changing.look(desk)
    return (*COMMANDS, *(row for changing in CHANGING_COMMANDS.values() for row in changing.rows(desk)))


_BY_KEY = {row.key: row for row in COMMANDS}
assert len(_BY_KEY) == len(COMMANDS), "two commands share a key"
