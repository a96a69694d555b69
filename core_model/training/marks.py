"""Marks of trainings under way: one that was killed leaves its mark, and is told of once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from core_model.checkpoint.run_record import read_run
from core_model.errors import CheckpointError
from core_model.results import RunInfo

_BEFORE, _AFTER = ".", ".training"


@contextmanager
def marked(folder: Path) -> Iterator[None]:
    """Mark the run of this folder, beside it, as under way. OSError when the disk refuses.

    The mark outlives a process that is killed; its lock does not.
    """
    from filelock import FileLock

    mark = folder.with_name(f"{_BEFORE}{folder.name}{_AFTER}")
    try:
        with FileLock(mark):
            yield
    finally:
        mark.unlink(missing_ok=True)


def killed_runs(runs: Path) -> Mapping[Path, RunInfo]:
    """The runs in this folder that were killed after they had been saved, told once: their marks are removed.

    What was killed before has left an empty folder, which is removed too.
    """
    found: dict[Path, RunInfo] = {}
    for mark in sorted(runs.glob(f"{_BEFORE}*{_AFTER}")):
        folder = mark.with_name(mark.name.removeprefix(_BEFORE).removesuffix(_AFTER))
        if _is_held(mark):
            continue
        with suppress(OSError):  # another user's, or told of by another window at the same moment
            mark.unlink()
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
            elif run := _run_in(folder):
                found[folder] = run
    return found


def _is_held(mark: Path) -> bool:
    """Whether the process that made the mark is still there."""
    from filelock import FileLock

    try:
        with FileLock(mark, timeout=0):
            return False
    except OSError:  # Timeout is one, as is a folder that may only be read
        return True


def _run_in(folder: Path) -> RunInfo | None:
    """What it tells of itself; None where that is damaged, as it says when it is opened."""
    try:
        return read_run(folder)
    except CheckpointError:
        return None
