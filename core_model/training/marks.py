"""Marks of trainings under way: one that was killed leaves its mark, and is told of once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from core_model.checkpoint.run_record import read_run
from core_model.errors import CheckpointError
from core_model.results import RunInfo

_BEFORE, _AFTER = ".", ".training"


@contextmanager
def marked(folder: Path) -> Iterator[None]:
    """Mark the run of this folder, beside it, as under way. OSError when the disk refuses.

    The mark outlives a process that is killed; its lock does not. It goes before its lock does, so that no other
    process finds it without.
    """
    from filelock import FileLock

    mark = folder.with_name(f"{_BEFORE}{folder.name}{_AFTER}")
    with FileLock(mark):
        try:
            yield
        finally:
            _remove_locked(mark)


def killed_runs(places: Iterable[Path]) -> Mapping[Path, RunInfo]:
    """The runs in these folders that were killed after they had been saved, told once: their marks are removed.

    What was killed before has left an empty folder, which is removed too.
    """
    found: dict[Path, RunInfo] = {}
    for place in places:
        for mark in sorted(place.glob(f"{_BEFORE}*{_AFTER}")):
            folder = mark.with_name(mark.name.removeprefix(_BEFORE).removesuffix(_AFTER))
            with suppress(OSError):  # held by the process that made it, another user's, in a folder only to be read
                if run := _told_once(mark, folder):
                    found[folder] = run
    return found


def _told_once(mark: Path, folder: Path) -> RunInfo | None:
    """The run of a mark that nobody holds. OSError where somebody does, Timeout being one."""
    from filelock import FileLock

    with FileLock(mark, timeout=0):
        is_empty = folder.is_dir() and not any(folder.iterdir())
        if is_empty:
            folder.rmdir()
        run = None if is_empty else _run_in(folder)
        _remove_locked(mark)
    return run


def _remove_locked(mark: Path) -> None:
    with suppress(PermissionError):  # Windows removes no open file; there its lock does when it is released
        mark.unlink(missing_ok=True)


def _run_in(folder: Path) -> RunInfo | None:
    """What it tells of itself; None where that is damaged, as it says when it is opened."""
    try:
        return read_run(folder)
    except CheckpointError:
        return None
