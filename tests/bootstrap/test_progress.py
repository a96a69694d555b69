"""What pip prints, as pip 23.2 (one package at a time) and pip 25 (all metadata first, progress as numbers) do."""

from __future__ import annotations

import io
import threading

import pytest

from explorer.bootstrap.progress import PipProgress, Report, each_second

OLD_PIP = """\
Looking in indexes: https://index.example/simple
Collecting torch>=2.13
  Downloading torch-2.13.0-cp311-none-macosx_11_0_arm64.whl (74.1 MB)
Collecting numpy>=2.2
  Using cached numpy-2.4.6-cp311-cp311-macosx_14_0_arm64.whl (from torch>=2.13)
Requirement already satisfied: pip in ./.venv
Collecting sympy==1.14.0 (from torch>=2.13)
  Processing /wheels/sympy-1.14.0-py3-none-any.whl
Installing collected packages: sympy, numpy, torch
Successfully installed numpy-2.4.6 sympy-1.14.0 torch-2.13.0
"""
NEW_PIP = """\
Collecting torch>=2.13
  Downloading torch-2.13.0-cp311-none-macosx_11_0_arm64.whl.metadata (28 kB)
Collecting numpy>=2.2
  Downloading numpy-2.4.6-cp311-cp311-macosx_14_0_arm64.whl.metadata (62 kB)
Downloading torch-2.13.0-cp311-none-macosx_11_0_arm64.whl (74.1 MB)
Progress 0 of 74100000
Progress 37050000 of 74100000
Downloading numpy-2.4.6-cp311-cp311-macosx_14_0_arm64.whl (5.4 MB)
Installing collected packages: numpy, torch
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Report, "SECONDS_BETWEEN_UPDATES", 0.0)


def follow(text: str, tmp_path, *, expected: int) -> tuple[list[str], PipProgress]:
    stream = io.StringIO()
    progress = PipProgress(Report(stream), tmp_path, expected=expected)
    for line in text.splitlines():
        progress.read(line)
    return stream.getvalue().splitlines(), progress


def test_each_package_is_named_with_its_version_and_size_out_of_all_pinned(tmp_path):
    lines, progress = follow(OLD_PIP, tmp_path, expected=42)
    assert lines == [
        "[2/3] package 1 of about 42: torch 2.13.0 (74.1 MB)",
        "[2/3] package 2 of about 42: numpy 2.4.6",
        "[2/3] package 3 of about 42: sympy 1.14.0",
        "[3/3] installing 3 packages",
    ]
    assert progress.installing == 3


def test_packages_that_pip_finds_beyond_the_pins_are_counted(tmp_path):
    lines, _ = follow(NEW_PIP, tmp_path, expected=1)
    assert lines == [
        "[2/3] package 1 of about 2: torch 2.13.0 (74.1 MB)",
        "[2/3] package 2 of about 2: numpy 2.4.6 (5.4 MB)",
        "[3/3] installing 2 packages",
    ]


def test_a_large_file_shows_how_much_of_it_is_there(tmp_path, impatient):
    lines, _ = follow(NEW_PIP, tmp_path, expected=0)
    assert "[2/3] package 1: torch 2.13.0 (74.1 MB): 50 %" in lines


def test_where_most_is_there_already_nobody_guesses_how_many_packages_will_come(tmp_path):
    lines, _ = follow(OLD_PIP, tmp_path, expected=0)
    assert lines[:2] == ["[2/3] package 1: torch 2.13.0 (74.1 MB)", "[2/3] package 2: numpy 2.4.6"]


def test_an_index_that_does_not_answer_is_mentioned_while_pip_tries_again(tmp_path, impatient):
    lines, _ = follow("WARNING: Retrying (Retry(total=3, connect=None)) after ...", tmp_path, expected=0)
    assert lines == ["[2/3] the package index does not answer; trying 4 more times"]


def test_installed_packages_are_counted_by_their_metadata(tmp_path, impatient):
    site_packages = tmp_path / "lib/python3.11/site-packages"
    stream = io.StringIO()
    progress = PipProgress(Report(stream), tmp_path, expected=3)
    progress.read("Installing collected packages: sympy, numpy, torch")
    for name in ("sympy-1.14.0", "numpy-2.4.6"):
        (site_packages / f"{name}.dist-info").mkdir(parents=True)
        (site_packages / f"{name}.dist-info/METADATA").touch()
    progress.tick()
    progress.tick()
    assert stream.getvalue().splitlines()[1:] == ["[3/3] installed 2 of 3 packages"]


def test_what_pip_still_finishes_is_not_called_installed(tmp_path, impatient):
    stream = io.StringIO()
    progress = PipProgress(Report(stream), tmp_path, expected=1)
    progress.read("Installing collected packages: numpy")
    folder = tmp_path / "lib/python3.11/site-packages/numpy-2.4.6.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").touch()
    progress.tick()
    assert stream.getvalue().splitlines()[-1] == "[3/3] installed 0 of 1 packages"


def test_a_terminal_shows_updates_in_one_line_that_is_cleared_at_the_end(monkeypatch):
    monkeypatch.setenv("COLUMNS", "7")
    stream = Terminal()
    report = Report(stream)
    report.update("10 %")
    report.update("20 %")
    report.line("done")
    assert stream.getvalue() == "\r10 %  \r20 %  \r      \rdone\n"


def test_a_log_file_is_not_flooded_with_updates():
    stream = io.StringIO()
    report = Report(stream)
    for percent in range(100):
        report.update(f"{percent} %")
    assert stream.getvalue() == ""


def test_a_silent_program_is_noticed_each_second():
    told = threading.Event()

    def silent_program():
        yield "begins\n"
        told.wait()
        yield "ends\n"

    events = []
    for line in each_second(silent_program()):
        events.append(line)
        if line is None:
            told.set()
    assert events == ["begins", None, "ends"]
