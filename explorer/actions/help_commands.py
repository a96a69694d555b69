"""Help: how to find one's way."""

from __future__ import annotations

from explorer.actions.command import Command

HELP_COMMANDS = (
    Command(
        key="palette",
        title="All commands…",
        menu="Help",
        group="find",
        shortcut="Ctrl+Shift+P",
        icon="command",
        tooltip="Find any command by a few letters of its name, with its shortcut.",
        run=lambda desk: desk.window.show_palette(),
    ),
    Command(
        key="show_log",
        title="Show log file",
        menu="Help",
        group="about",
        tooltip="Open the folder that holds the log.",
        run=lambda desk: desk.window.show_log(),
    ),
    Command(
        key="about",
        title="About Transformer Explorer",
        menu="Help",
        group="about",
        icon="info",
        tooltip="Which version this is, and of what it is made.",
        run=lambda desk: desk.window.show_about(),
    ),
)
