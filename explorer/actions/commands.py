"""The one table of commands: menus, toolbar, shortcuts and palette are made from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from explorer.actions.command import Command, MenuName
from explorer.actions.desk import Desk
from explorer.actions.edit_commands import EDIT_COMMANDS
from explorer.actions.file_commands import (
    FILE_COMMANDS,
    FROM_CACHE,
    SAVE_AS,
    cached_commands,
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

CHANGING_COMMANDS: dict[tuple[str, str], Callable[[Desk], tuple[Command, ...]]] = {
    ("File", "Open recent"): recent_commands,
    ("File", FROM_CACHE): cached_commands,
    ("File", "Samples"): sample_commands,
    ("File", SAVE_AS): save_as_commands,
    ("Model", "Site"): site_commands,
}
"""Submenus whose rows depend on the moment, by (menu, submenu)."""


def command(key: str) -> Command:
    """The command of that key. Raises KeyError when there is none."""
    return _BY_KEY[key]


def commands_now(desk: Desk) -> tuple[Command, ...]:
    """Every command there is at this moment, for the palette."""
    return (*COMMANDS, *(row for rows in CHANGING_COMMANDS.values() for row in rows(desk)))


_BY_KEY = {row.key: row for row in COMMANDS}
assert len(_BY_KEY) == len(COMMANDS), "two commands share a key"
