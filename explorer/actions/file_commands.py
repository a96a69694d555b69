"""File: what to look at."""

from __future__ import annotations

from pathlib import Path

from core_model.checkpoint.hub_cache import CachedModel, cached_models
from core_model.errors import CheckpointError
from explorer.actions.command import Command
from explorer.actions.desk import Desk
from explorer.samples import Sample, bundled_samples
from explorer.state.app_state import Notice
from explorer.state.moves import add_notice, open_source

FROM_CACHE = "Open from cache"


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


def _open_cached(model: CachedModel) -> Command:
    broken = f"It cannot be opened: {model.problem}."
    return Command(
        key=f"open_cached:{model.name}",
        title=model.name,
        menu="File",
        submenu=FROM_CACHE,
        group="open",
        tooltip=broken if model.problem else f"Open {model.name} from the Hugging Face cache.",
        icon="model",
        run=lambda desk: desk.store.apply(open_source(model.folder)),
        is_enabled=lambda desk: model.problem is None,
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


def cached_commands(desk: Desk) -> tuple[Command, ...]:
    """One row a model in the local Hugging Face cache; what cannot be opened says why."""
    try:
        return tuple(_open_cached(model) for model in cached_models())
    except CheckpointError as error:
        desk.store.settle(add_notice(Notice(severity="warning", text=str(error))))
        return ()


def sample_commands(desk: Desk) -> tuple[Command, ...]:
    """One row a bundled sample."""
    return tuple(_open_sample(sample) for sample in bundled_samples())
