"""File: what to look at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from core_model.checkpoint.hub_cache import CachedModel
from explorer.actions.command import Command
from explorer.actions.desk import Desk
from explorer.samples import Sample, bundled_samples
from explorer.state.app_state import Notice
from explorer.state.errands import CacheQuery, ConvertPickleQuery, DownloadQuery, Errand, SaveAsFamilyQuery
from explorer.state.given_file import SUFFIXES, FileKind
from explorer.state.moves import Move, add_notice, give_file, open_source, with_cache
from explorer.state.queries import traced
from explorer.viewmodels.path_names import path_names

FROM_CACHE, SAVE_AS = "Open from cache", "Save as Hugging Face folder"


def _open_file(desk: Desk) -> None:
    if path := desk.window.questions.file():
        desk.store.apply(open_source(path))


def _open_folder(desk: Desk) -> None:
    if path := desk.window.questions.folder():
        desk.store.apply(open_source(path))


def _export(desk: Desk) -> None:
    desk.window.show_export()


def _is_something_shown(desk: Desk) -> bool:
    return traced(desk.state) is not None


def _give(kind: FileKind, *, title: str, tooltip: str, asking: str, files: str) -> Command:
    return Command(
        key=f"open_{kind}",
        title=title,
        menu="File",
        group="give",
        icon=kind,
        tooltip=tooltip,
        run=lambda desk: _give_chosen(desk, kind, asking, files),
        is_enabled=lambda desk: desk.state.current_model is not None and kind in desk.state.current_model.reads,
    )


def _give_chosen(desk: Desk, kind: FileKind, asking: str, files: str) -> None:
    """Give the file the person chooses. `asking` is the title of the question, `files` what is chosen from, plural."""
    tr = QCoreApplication.translate
    patterns = " ".join(f"*{suffix}" for suffix in SUFFIXES[kind])
    before = getattr(desk.state.inputs, kind)
    kinds = f"{tr('Command', files)} ({patterns});;{tr('Command', 'All files')} (*)"
    path = desk.window.questions.file(tr("Command", asking), kinds, beside=before and before.path)
    if path is not None:
        desk.store.apply(give_file(kind, path))


def _quit(desk: Desk) -> None:
    desk.window.close()


def _open_recent(path: Path, name: str) -> Command:
    return Command(
        key=f"open_recent:{path}",
        title=name,
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


def _save_as(key: str, label: str) -> Command:
    return Command(
        key=f"save_as:{key}",
        title=label,
        menu="File",
        submenu=SAVE_AS,
        group="open",
        tooltip=f"Write the model as a {label} folder, which the transformers library opens.",
        icon="export",
        run=lambda desk: _save(desk, key),
    )


def _save(desk: Desk, family: str) -> None:
    title = QCoreApplication.translate("Command", "A new folder for the model")
    source, folder = desk.state.source, desk.window.questions.new_folder(title)
    if source is not None and folder is not None:
        query = SaveAsFamilyQuery(source=source, family=family, folder=folder)
        desk.window.run_errand(Errand(query=query, learn=_saved))


def _saved(folder: Path) -> Move:
    text = QCoreApplication.translate("Command", "The model was saved in {folder}.")
    return add_notice(Notice(severity="info", text=text.format(folder=folder)))


def _convert_pickle(desk: Desk) -> None:
    """Of the pickle that was to be opened, or of one that is chosen; with the person's yes."""
    tr = QCoreApplication.translate
    problem, source = desk.controller.problem, desk.state.source
    path = source.path if source and problem and problem.remedy == "convert_pickle" else None
    if path is None:
        kinds = tr("Command", "PyTorch pickles (*.bin *.pt *.pth *.ckpt)")
        path = desk.window.questions.file(tr("Command", "The pickle to convert"), kinds)
    question = tr(
        "Command",
        "A pickle can run code when it is read. Its weights alone will be read, by a process of its own with bounds on "
        "memory and time, and written as safetensors into a new folder. Convert {name}?",
    )
    if path is None or not desk.window.questions.is_yes(
        tr("Command", "Convert pickle"), question.format(name=path.name)
    ):
        return
    folder = desk.window.questions.new_folder(tr("Command", "A new folder for the weights"))
    if folder is not None:
        query = ConvertPickleQuery(path=path, folder=folder)
        desk.window.run_errand(Errand(query=query, learn=_saved, then=open_source))


def download_errand(repository: str, revision: str) -> Errand[Path]:
    """Fetch a model from the Hub, then open it."""
    text = QCoreApplication.translate("Command", "{name} was downloaded.").format(name=repository)
    return Errand(
        query=DownloadQuery(repository=repository, revision=revision),
        learn=lambda folder: add_notice(Notice(severity="info", text=text)),
        then=open_source,
    )


_LISTING_CACHE = Command(
    key="open_cached:listing",
    title="Reading the cache…",
    menu="File",
    submenu=FROM_CACHE,
    group="open",
    tooltip="The models of the local Hugging Face cache are being listed.",
    run=lambda desk: None,
    is_enabled=lambda desk: False,
)

_NO_CACHE = replace(_LISTING_CACHE, key="open_cached:none", title="The cache cannot be read")

_NO_FAMILY = Command(
    key="save_as:none",
    title="No family can express this model",
    menu="File",
    submenu=SAVE_AS,
    group="open",
    tooltip="No family of the transformers library has words for all of this model's config.",
    run=lambda desk: None,
    is_enabled=lambda desk: False,
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
        key="download",
        title="Download from the Hugging Face Hub…",
        menu="File",
        group="open",
        tooltip="Fetch a model's safetensors, config and tokenizer; the only command that opens a connection.",
        run=lambda desk: desk.window.show_download(),
    ),
    _give(
        "picture",
        title="Open picture…",
        tooltip="Give the model a picture to read, in the place of the one before.",
        asking="Open a picture",
        files="Pictures",
    ),
    _give(
        "sound",
        title="Open sound…",
        tooltip="Give the model a sound to read, in the place of the one before.",
        asking="Open a sound",
        files="Sounds",
    ),
    Command(
        key="convert_pickle",
        title="Convert pickle…",
        menu="File",
        group="convert",
        tooltip="Write the weights of a .bin or .pt file as safetensors, without running what is in it.",
        run=_convert_pickle,
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
    paths = desk.state.recent
    return tuple(map(_open_recent, paths, path_names(paths)))


def save_as_commands(desk: Desk) -> tuple[Command, ...]:
    """One row a family that can express the model that is open; a row that says so where none can."""
    model = desk.state.current_model
    if model is None:
        return ()
    return tuple(_save_as(*family) for family in model.families) or (_NO_FAMILY,)


def list_cache(desk: Desk) -> None:
    """Have the local Hugging Face cache listed, beside everything else."""
    desk.window.run_errand(Errand(query=CacheQuery(), learn=with_cache))


def cached_commands(desk: Desk) -> tuple[Command, ...]:
    """One row a model in the cache as it was last listed; what cannot be opened says why, as does the cache itself."""
    listing = desk.state.cache
    if listing is None:
        return (_LISTING_CACHE,)
    if listing.problem:
        return (replace(_NO_CACHE, tooltip=f"{listing.problem}."),)
    return tuple(_open_cached(model) for model in listing.models)


def sample_commands(desk: Desk) -> tuple[Command, ...]:
    """One row a bundled sample."""
    return tuple(_open_sample(sample) for sample in bundled_samples())
