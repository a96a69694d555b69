"""Folders that are written whole or not at all, whatever becomes of the writer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core_model.checkpoint.writing import staged_folder

_WRITER = """
import sys
from pathlib import Path
from core_model.checkpoint.writing import staged_folder

with staged_folder(Path(sys.argv[1])) as new:
    (new / "half").touch()
    print("writing", flush=True)
    sys.stdin.read()
"""


@contextmanager
def writer(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process in the middle of writing a folder; killed at the end, if not before."""
    command = [sys.executable, "-c", _WRITER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "writing\n"
        try:
            yield process
        finally:
            process.kill()


def write(folder: Path) -> None:
    with staged_folder(folder) as new:
        (new / "file").touch()


def test_what_a_killed_writer_left_is_removed_by_the_next_save(tmp_path: Path) -> None:
    with writer(tmp_path / "model"):
        pass
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".saving-") and (left / "model" / "half").exists()
    write(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_another_process_is_writing_stays(tmp_path: Path) -> None:
    with writer(tmp_path / "other") as process:
        write(tmp_path / "model")
        process.communicate("")
        assert process.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "other"]
    assert (tmp_path / "other" / "half").exists()
