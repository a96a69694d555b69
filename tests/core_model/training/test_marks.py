"""What is left of a training whose process was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

from core_model.training.marks import killed_runs, marked
from core_model.training.runs import claimed_run_folder

ROOT = Path(__file__).resolve().parents[3]
TRAINING = """
import sys
from pathlib import Path
from core_model.training.marks import marked
with marked(Path(sys.argv[1])):
    print("training", flush=True)
    sys.stdin.read()
"""


def saved(folder: Path, *, n_updates: int) -> Path:
    folder.mkdir()
    record = {"settings": {"steps": 2000}, "history": {"loss": [1.0] * n_updates}}
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def killed(folder: Path) -> None:
    """A training of that run in a process of its own, killed."""
    with subprocess.Popen(
        [sys.executable, "-c", TRAINING, str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None and running.stdout.readline() == "training\n"
        assert killed_runs([folder.parent]) == {}, "it is under way"
        os.kill(running.pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def test_a_killed_run_is_told_once_with_the_step_it_was_saved_at(tmp_path: Path) -> None:
    folder = saved(tmp_path / "reverse-1", n_updates=500)
    killed(folder)
    (found,) = killed_runs([tmp_path]).items()
    assert found[0] == folder and found[1].progress == "step 500 of 2000"
    assert killed_runs([tmp_path]) == {} and list(tmp_path.iterdir()) == [folder]


class _UnlinkingLock(filelock.UnixFileLock):
    """As on Windows, where no open file is removed, and a lock removes its own when it is released."""

    def _release(self) -> None:
        super()._release()
        os.unlink(self.lock_file)


@pytest.mark.skipif(sys.platform == "win32", reason="it is so there by itself")
def test_a_lock_that_removes_its_own_file_tells_of_the_run_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved(tmp_path / "reverse-1", n_updates=500)
    killed(folder)

    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError

    monkeypatch.setattr(filelock, "FileLock", _UnlinkingLock)
    monkeypatch.setattr(Path, "unlink", refuse)
    assert list(killed_runs([tmp_path])) == [folder]
    assert list(tmp_path.iterdir()) == [folder]


def test_a_run_killed_before_it_was_saved_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "reverse-1").mkdir()
    killed(tmp_path / "reverse-1")
    assert killed_runs([tmp_path]) == {} and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [None, RuntimeError])
def test_a_training_that_ended_leaves_no_mark_however_it_ended(error: type[Exception] | None, tmp_path: Path) -> None:
    try:
        with claimed_run_folder(tmp_path, "reverse") as folder:
            (folder / "run.json").write_text("{}")
            if error:
                raise error
    except RuntimeError:
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["reverse-1"]


def test_a_training_that_ends_is_at_no_moment_taken_for_one_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []

    class _LookedAt(filelock.FileLock):
        def release(self, force: bool = False) -> None:
            super().release(force)
            with monkeypatch.context() as patch:
                patch.setattr(filelock, "FileLock", plain)
                found.append(killed_runs([tmp_path]))

    plain = filelock.FileLock
    monkeypatch.setattr(filelock, "FileLock", _LookedAt)
    with marked(saved(tmp_path / "reverse-1", n_updates=500)):
        pass
    assert found and not any(found)


def test_where_no_run_was_ever_kept_none_was_killed(tmp_path: Path) -> None:
    assert killed_runs([tmp_path / "runs"]) == {}
