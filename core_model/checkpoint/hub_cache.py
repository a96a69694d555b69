"""The local cache of the Hugging Face Hub: which models it holds, without its library and without a connection.

A model is a folder `models--<owner>--<name>` with `snapshots/<revision>/`, whose files are links into `blobs/`, and
`refs/<branch>`, which names a revision.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from core_model.checkpoint.files import open_regular
from core_model.errors import CheckpointError
from core_model.wording import counted, file_name, shown, some_of

_ENTRY = re.compile(r"models--(?P<name>.+)")
_REPOSITORY = re.compile(r"\w[\w.-]{0,95}(/\w[\w.-]{0,95})?", re.ASCII)
"""As long as the Hub lets names be."""
_REVISION_BYTES = 100


@dataclass(frozen=True, kw_only=True)
class CachedModel:
    """One model of the cache: its name on the Hub, its folder, and why it cannot be opened; None when it may be."""

    name: str
    folder: Path
    problem: str | None = None


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the Hub's library keeps what it fetched: HF_HUB_CACHE, else hub in HF_HOME, else ~/.cache/huggingface."""
    if cache := environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE"):
        return Path(cache).expanduser()
    if home := environment.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    caches = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "huggingface" / "hub"


def cached_models(cache: Path | None = None) -> tuple[CachedModel, ...]:
    """The models of the cache by name, those too that cannot be opened; none where there is no cache.

    CheckpointError when the cache cannot be read.
    """
    cache = cache_folder() if cache is None else cache
    try:
        entries = sorted(cache.iterdir()) if cache.is_dir() else []
    except OSError as error:
        raise CheckpointError(f"the cache {shown(cache)} cannot be read: {error.strerror}", path=cache) from error
    named = [(entry, cached_name(entry.name)) for entry in entries]
    return tuple(CachedModel(name=name, folder=entry, problem=_problem(entry)) for entry, name in named if name)


def find_cached(name: str, cache: Path | None = None) -> Path | None:
    """The folder of a model in the cache, by its name on the Hub; None when it is not there."""
    if not is_repository(name):
        return None
    entry = (cache_folder() if cache is None else cache) / entry_name(name)
    return entry if (entry / "snapshots").is_dir() else None


def is_repository(name: str) -> bool:
    """Whether a model on the Hub may have that name."""
    return _REPOSITORY.fullmatch(name) is not None


def entry_name(name: str) -> str:
    """What the folder of a model is called in a cache."""
    return f"models--{name.replace('/', '--')}"


def cached_name(folder_name: str) -> str | None:
    """The model's name on the Hub, of the name of its folder in a cache; None for another folder."""
    entry = _ENTRY.fullmatch(folder_name)
    return entry["name"].replace("--", "/") if entry else None


def snapshot_of(entry: Path) -> Path:
    """The snapshot of a model in the cache: the one refs/main names, else the newest.

    CheckpointError when there is none.
    """
    held = entry / "snapshots"
    snapshots = [path for path in held.iterdir() if path.is_dir()] if held.is_dir() else []
    if not snapshots:
        raise CheckpointError(f"{file_name(entry)} is a cache entry without a snapshot: download the model", path=entry)
    main = entry / "refs" / "main"
    revision = ""
    if main.is_file():
        with open_regular(main) as file:
            revision = file.read(_REVISION_BYTES).decode("ascii", "replace").strip()
    named = [path for path in snapshots if path.name == revision]
    return named[0] if named else max(snapshots, key=lambda path: path.stat().st_mtime)


def broken_links(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Those of the paths that are links to what is no longer there."""
    return tuple(sorted(path for path in paths if path.is_symlink() and not path.exists()))


def told_broken(folder: Path, broken: tuple[Path, ...]) -> str:
    """A sentence on such links and what to do."""
    names = some_of([file_name(path) for path in broken])
    are = "is a link to a file that is" if len(broken) == 1 else "are links to files that are"
    return f"{names} in {file_name(folder)} {are} no longer there: download the model again"


def _problem(entry: Path) -> str | None:
    """Why a model of the cache cannot be opened, as far as names tell."""
    try:
        snapshot = snapshot_of(entry)
        if broken := broken_links(snapshot.iterdir()):
            return told_broken(snapshot, broken)
        if not any(path.name.endswith(".safetensors") for path in snapshot.iterdir()):
            files = counted(sum(1 for _ in snapshot.iterdir()), "file")
            return f"no .safetensors file among its {files}: download the weights"
    except CheckpointError as error:
        return str(error)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return None
