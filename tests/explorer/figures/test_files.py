from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from explorer.figures.files import ExportError, format_of, whole_file


@pytest.mark.parametrize(("name", "format"), [("a.svg", "svg"), ("A.PDF", "pdf"), ("b.x.png", "png"), ("a.npz", "npz")])
def test_the_ending_chooses_the_format(name, format):
    assert format_of(Path(name)) == format


@pytest.mark.parametrize(
    ("name", "found"), [("a.jpg", "ends in '.jpg'"), ("a", "has no ending"), (".svg", "has no ending")]
)
def test_an_unknown_ending_is_refused_with_the_known_ones(name, found):
    with pytest.raises(ExportError) as refusal:
        format_of(Path(name))
    assert str(refusal.value) == f"'{name}' {found}: give it one of .svg, .pdf, .png, .csv, .npz."


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.EDQUOT, "your disk quota is used up; free some space or choose another disk."),
        (errno.EACCES, "writing there is not allowed; choose another folder."),
        (errno.EROFS, "the disk is read-only; choose another folder."),
        (errno.EBUSY, f"{os.strerror(errno.EBUSY)}; choose another place."),
    ],
)
def test_what_the_disk_refuses_is_one_sentence_and_leaves_nothing(tmp_path, code, reason):
    path = tmp_path / "a.csv"
    with pytest.raises(ExportError) as refusal, whole_file(path):
        raise OSError(code, os.strerror(code))
    assert str(refusal.value) == f"Cannot write {path}: {reason}"
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_a_file_as_folder_and_a_folder_as_file_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.csv").mkdir()
    for path, reason in (
        (tmp_path / "none" / "a.csv", "its folder does not exist; make it or choose another one."),
        (tmp_path / "file" / "a.csv", "part of its path is a file, not a folder; choose another folder."),
        (tmp_path / "folder.csv", "a folder has that name; choose another name."),
        (tmp_path / ("x" * 300 + ".csv"), "the name is too long; choose a shorter one."),
    ):
        with pytest.raises(ExportError) as refusal, whole_file(path) as file:
            file.write(b"x")
        assert str(refusal.value) == f"Cannot write {path}: {reason}"
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.csv"]
