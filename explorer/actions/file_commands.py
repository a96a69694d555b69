"""File: what to look at."""

from __future__ import annotations

from pathlib import Path

from explorer.actions.command import Command
from explorer.actions.desk import Desk
from explorer.samples import Sample, bundled_samples
from explorer.state.moves import open_source


def _open_file(desk: Desk) -> None:
    if path := desk.window.ask_for_file():
        desk.store.apply(open_source(path))


def _open_folder(desk: Desk) -> None:
    if path := desk.window.ask_for_folder():
        desk.store.apply(open_source(path))


def _export(desk: Desk) -> None:
    desk.window.show_export()


def _is_something_shown(desk: Desk) -> bool:
    return desk.state.is_traced


def _quit(desk: Desk) -> None:
    desk.window.close()


def _open_recent(path: Path) -> Command:
    return Command(
        key=f"open_recent:{path}",
        title=path.name or str(path),
        menu="File",
        submenu="Open recent",
        group="open",
        tooltip=f"Open {path} again.",
        icon="model",
        run=lambda desk: desk.store.apply(open_source(path)),
    )


def _open_sample(sample: Sample) -> Command:
    return Command(
        key=f"open_sample:{sample.title}",
        title=sample.title,
        menu="File",
        submenu="Samples",
        group="open",
        tooltip=sample.line,
        icon="model",
        run=lambda desk: desk.store.apply(sample.opening),
    )


FILE_COMMANDS = (
    Command(
        key="open_file",
        title="Open file…",
        menu="File",
        group="open",
        shortcut="Ctrl+O",
        icon="open",
        tooltip="Open a checkpoint from a .safetensors file or an index.",
        run=_open_file,
    ),
    Command(
        key="open_folder",
        title="Open folder…",
        menu="File",
        group="open",
        shortcut="Ctrl+Shift+O",
        icon="open",
        tooltip="Open a checkpoint folder, or the folder of a training run.",
        run=_open_folder,
    ),
    Command(
        key="export",
        title="Export…",
        menu="File",
        group="export",
        shortcut="Ctrl+E",
        icon="export",
        tooltip="Save the matrix on screen as a figure or as numbers.",
        run=_export,
        is_enabled=_is_something_shown,
    ),
    Command(
        key="quit",
        title="Quit",
        menu="File",
        group="quit",
        shortcut="Ctrl+Q",
        tooltip="Close the window.",
        run=_quit,
    ),
)


def recent_commands(desk: Desk) -> tuple[Command, ...]:
    """One row a path that was opened before, newest first."""
    return tuple(_open_recent(path) for path in desk.state.recent)


def sample_commands(desk: Desk) -> tuple[Command, ...]:
    """One row a bundled sample."""
    return tuple(_open_sample(sample) for sample in bundled_samples())
