"""Edit: the text, and steps back."""

from __future__ import annotations

from explorer.actions.command import Command
from explorer.actions.desk import Desk
from explorer.state.moves import lock_cell


def _is_something_read(desk: Desk) -> bool:
    """Whether there is a field to go to: before a model is open, what is typed waits for it."""
    model = desk.state.current_model
    return model is None or bool(model.reads)


EDIT_COMMANDS = (
    Command(
        key="undo",
        title="Undo",
        menu="Edit",
        group="undo",
        shortcut="Ctrl+Z",
        icon="undo",
        tooltip="Go back to what was selected, typed or opened before.",
        run=lambda desk: desk.store.undo(),
        is_enabled=lambda desk: desk.store.can_undo,
    ),
    Command(
        key="redo",
        title="Redo",
        menu="Edit",
        group="undo",
        shortcut="Ctrl+Shift+Z|Ctrl+Y",
        icon="redo",
        tooltip="Take the last undo back.",
        run=lambda desk: desk.store.redo(),
        is_enabled=lambda desk: desk.store.can_redo,
    ),
    Command(
        key="focus_text",
        title="Edit text",
        menu="Edit",
        group="text",
        shortcut="Ctrl+L",
        icon="text",
        tooltip="Type the text that the model reads.",
        run=lambda desk: desk.window.focus_text(),
        is_enabled=_is_something_read,
    ),
    Command(
        key="free_cell",
        title="Free cell",
        menu="Edit",
        group="text",
        shortcut="Esc",
        tooltip="Let go of the locked cell, so that the mouse leads again.",
        run=lambda desk: desk.store.apply(lock_cell(None)),
        is_enabled=lambda desk: desk.state.selection.cell is not None,
    ),
)
