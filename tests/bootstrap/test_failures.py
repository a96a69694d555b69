"""Each way in which a set-up fails on machines of real people: one line that says what to do."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from explorer.bootstrap import installation
from explorer.bootstrap.failures import SetupError, explain_os_error, explain_output
from explorer.bootstrap.prepare import prepare

# The lines in which pip and venv say it.
NO_NETWORK = [
    "WARNING: Retrying (Retry(total=0, connect=None, read=None, status=None)) after connection broken by "
    "'NewConnectionError('<HTTPSConnection object>: Failed to establish a new connection: [Errno 101] Network is "
    "unreachable')': /simple/torch/",
    "ERROR: Could not find a version that satisfies the requirement torch>=2.13 (from versions: none)",
    "ERROR: No matching distribution found for torch>=2.13",
]
FULL_DISK = ["ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"]
NO_BUILD = [
    "ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: 2.2.0, 2.2.2)",
    "ERROR: No matching distribution found for torch==2.13.0",
]


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (NO_NETWORK, "the package index does not answer: connect to the network"),
        (FULL_DISK, "the disk is full: free 4 GB or more"),
        ([*NO_NETWORK[:1], *FULL_DISK], "the disk is full: free 4 GB or more"),
        (NO_BUILD, "pip finds no torch==2.13.0 that fits Python"),
    ],
)
def test_known_failures_of_pip_become_one_line_with_the_next_step(output, says, tmp_path):
    sentence = explain_output(output, tmp_path)
    assert sentence.startswith(says)
    assert "\n" not in sentence


def test_an_unknown_failure_names_the_errors_and_the_log_with_everything(tmp_path):
    output = ["Collecting torch", "ERROR: Exception: the wheel is damaged", "bye"]
    sentence = explain_output(output, tmp_path)
    assert "ERROR: Exception: the wheel is damaged" in sentence
    assert str(tmp_path / "setup.log") in sentence
    assert (tmp_path / "setup.log").read_text().splitlines() == output


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "put the checkout into a folder of your own"),
        (errno.EACCES, "put the checkout into a folder of your own"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_errors_of_the_file_system_say_what_to_do(code, says):
    error = OSError(code, os.strerror(code), "/checkout/.venv")
    assert says in explain_os_error(error, Path("/checkout/.venv"))


def test_a_folder_that_cannot_be_written_is_one_line(checkout, monkeypatch):
    def refuse(path: Path, *_arguments, **_keywords) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(SetupError, match=r"\.venv cannot be written \(Permission denied\): put the checkout"):
        prepare(checkout.root, with_tests=False)


@pytest.mark.parametrize(
    ("manager", "advice"), [("/usr/bin/apt-get", "run 'sudo apt install python3."), (None, "install them, then")]
)
def test_a_python_without_venv_says_which_package_brings_it(checkout, monkeypatch, manager, advice):
    monkeypatch.setattr(
        installation.importlib.util, "find_spec", lambda name: None if name == "ensurepip" else object()
    )
    monkeypatch.setattr(shutil, "which", lambda name: manager)
    with pytest.raises(SetupError, match="lacks its modules venv and ensurepip") as caught:
        prepare(checkout.root, with_tests=False)
    assert advice in str(caught.value)
    assert not checkout.environment.exists()


def test_an_interrupted_download_keeps_the_environment_that_was_there(started_checkout, monkeypatch):
    def interrupt(*_arguments) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(installation, "run_pip", interrupt)
    before = (started_checkout.environment / installation.STAMP).read_text()
    started_checkout.require("tiny-dependency>=1.2", pin="1.5")
    with pytest.raises(KeyboardInterrupt):
        prepare(started_checkout.root, with_tests=False)
    assert (started_checkout.environment / installation.STAMP).read_text() == before
