"""Files that are whole or not there, and why a disk refuses, in our words."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core_model.disk import error_told_in, existing_parent, what_refuses, whole_file, why_not_written

ROOT = Path(__file__).resolve().parents[2]


def test_of_a_full_disk_it_is_said_how_much_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=3 << 20))
    said = why_not_written(OSError(errno.ENOSPC, "No space left on device"), tmp_path / "new" / "run")
    assert said == "the disk is full (3 MiB free); free some space or choose another disk"


def test_what_we_have_no_words_for_is_said_in_the_systems(tmp_path: Path) -> None:
    assert why_not_written(OSError(errno.EBUSY, "Resource busy"), tmp_path) == "Resource busy; choose another place"


def test_a_path_that_is_not_there_lies_on_the_disk_of_what_is_above_it(tmp_path: Path) -> None:
    assert existing_parent(tmp_path / "a" / "b") == tmp_path


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "your disk quota is used up"),
        (errno.EROFS, "the disk is read-only"),
        (errno.EACCES, "writing there is not allowed"),
        (errno.EIO, "the disk reports an error of its own"),
    ],
)
@pytest.mark.parametrize("text", ["I/O error: {why} (os error {number})", "Os {{ code: {number}, message: {why} }}"])
def test_what_the_disk_refused_is_found_in_a_librarys_own_words(
    number: int, told: str, text: str, tmp_path: Path
) -> None:
    """safetensors 0.8 writes the first, older ones the second."""
    found = error_told_in(text.format(why=os.strerror(number), number=number), tmp_path)
    assert found is not None and why_not_written(found, tmp_path).startswith(told)


def test_what_is_no_error_of_the_system_is_not_made_one(tmp_path: Path) -> None:
    assert error_told_in("Error while serializing: tensor 'a' is not contiguous", tmp_path) is None


@pytest.mark.skipif(sys.platform == "win32", reason="no bound on the size of a file there")
def test_weights_that_the_system_does_not_take_are_its_own_error(tmp_path: Path) -> None:
    """A real refusal through the real library, in a process that may write small files only."""
    program = (
        "import errno, resource, signal, sys, torch\n"
        "from pathlib import Path\n"
        "from core_model.checkpoint.writing import write_weights\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    write_weights(Path(sys.argv[1]), {'a': torch.zeros(1 << 16)})\n"
        "except OSError as error:\n"
        "    print(errno.errorcode[error.errno])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, cwd=ROOT
    )
    assert (done.stdout, done.stderr) == ("EFBIG\n", "")


def test_of_a_place_that_nobody_chose_the_reason_alone_is_said(tmp_path: Path) -> None:
    assert what_refuses(PermissionError(errno.EACCES, "Permission denied"), tmp_path) == "writing there is not allowed"


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_failure_on_the_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_the_file_behind_a_link_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    with whole_file(tmp_path / "link.csv") as file:
        file.write(b"new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


def test_a_name_may_be_as_long_as_the_disk_takes(tmp_path: Path) -> None:
    path = tmp_path / ("字" * 83 + ".csv")
    with whole_file(path) as file:
        file.write(b"new")
    assert (len(os.fsencode(path.name)), path.read_text()) == (253, "new")


def test_a_link_to_itself_gives_way_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.symlink_to(path)
    with whole_file(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"


def test_a_file_is_on_the_disk_before_it_takes_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, written, sync = tmp_path / "a.csv", [], os.fsync

    def note(descriptor: int) -> None:
        written.append((os.fstat(descriptor).st_size, path.exists()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    with whole_file(path) as file:
        file.write(b"four")
    assert (written, path.read_bytes()) == ([(4, False)], b"four")
