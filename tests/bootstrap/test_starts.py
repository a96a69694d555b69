"""Starts of a checkout as a person does them: real environments, the real pip, wheels from a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from explorer.bootstrap.environment import STAMP, Stamp, interpreter, read_stamp, write_stamp
from explorer.bootstrap.requirements import PYTHON

if TYPE_CHECKING:
    from tests.bootstrap.conftest import Checkout

# Stands in for pip: says that it installs, tells who it is, and works until it is ended.
ENDLESS_PIP = """
import os, pathlib, signal
pathlib.Path({pid_file!r}).write_text(str(os.getpid()))
print("Installing collected packages: tiny-dependency", flush=True)
signal.pause()
"""


def held(checkout: Checkout) -> list[str]:
    stamp = read_stamp(checkout.environment)
    assert stamp is not None
    return stamp.complete


def replace_pip(checkout: Checkout, code: str) -> None:
    (checkout.packages / "pip" / "__main__.py").write_text(code)


def test_first_start_makes_an_environment_and_runs_the_application_in_it(first_start):
    checkout, done = first_start
    assert done.stdout.split() == [str(checkout.environment), "1.0", "open", "a", "file"]
    assert done.returncode == 7


def test_first_start_says_each_step_and_how_far_it_is(first_start):
    checkout, done = first_start
    lines = done.stderr.splitlines()
    assert lines[0] == f"Transformer Explorer: preparing {checkout.environment} (once)"
    assert lines[1].startswith("[1/3] making an environment with Python")
    assert lines[2] == "[2/3] package 1 of about 1: tiny_dependency 1.0"
    assert lines[3] == "[3/3] installing 1 packages"
    assert lines[-1].startswith("ready after ")


def test_second_start_runs_no_pip_and_says_nothing(started_checkout):
    replace_pip(started_checkout, "raise SystemExit('pip was run')")
    before = (started_checkout.environment / STAMP).stat().st_mtime_ns
    done = started_checkout.start()
    assert (done.stdout.split(), done.stderr) == ([str(started_checkout.environment), "1.0"], "")
    assert (started_checkout.environment / STAMP).stat().st_mtime_ns == before


def test_a_start_with_the_interpreter_of_the_environment_goes_on_in_it(started_checkout):
    replace_pip(started_checkout, "raise SystemExit('pip was run')")
    done = started_checkout.start(python=interpreter(started_checkout.environment))
    assert (done.stdout.split(), done.stderr) == ([str(started_checkout.environment), "1.0"], "")


def test_a_python_that_has_everything_is_used_as_it_is(checkout):
    checkout.require("pytest>=9")
    (checkout.root / "explorer/cli.py").write_text("def main(arguments):\n    return 0\n")
    done = checkout.start()
    assert (done.returncode, done.stderr) == (0, "")
    assert not checkout.environment.exists()


def test_a_changed_pin_is_installed_into_the_environment_that_is_there(started_checkout):
    kept = started_checkout.packages / "installed_by_hand.py"
    kept.touch()
    started_checkout.require("tiny-dependency>=1", pin="1.5")
    done = started_checkout.start()
    assert done.stdout.split()[1] == "1.5"
    assert kept.exists()


def test_an_environment_made_by_hand_is_used_as_it_is(started_checkout):
    (started_checkout.environment / STAMP).unlink()
    replace_pip(started_checkout, "raise SystemExit('pip was run')")
    done = started_checkout.start()
    assert (done.stdout.split()[1], done.stderr) == ("1.0", "")
    assert read_stamp(started_checkout.environment) is None


def test_an_environment_made_by_hand_gets_what_it_lacks(started_checkout):
    (started_checkout.environment / STAMP).unlink()
    started_checkout.require("tiny-dependency>=1.2", pin="1.5")
    done = started_checkout.start(python=interpreter(started_checkout.environment))
    assert done.stdout.split()[1] == "1.5"


def test_an_unfinished_environment_is_made_anew(started_checkout):
    write_stamp(started_checkout.environment, [])
    half_installed = started_checkout.packages / "half_installed.py"
    half_installed.touch()
    done = started_checkout.start()
    assert done.stdout.split()[1] == "1.0"
    assert not half_installed.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"from": "another version"}'])
def test_a_stamp_that_cannot_be_read_vouches_for_nothing(tmp_path, text):
    (tmp_path / STAMP).write_text(text)
    assert read_stamp(tmp_path) == Stamp("", [])


def test_an_environment_of_another_python_is_made_anew(started_checkout):
    complete = (started_checkout.environment / STAMP).read_text()
    (started_checkout.environment / STAMP).write_text(complete.replace(PYTHON, "3.10"))
    done = started_checkout.start(python=interpreter(started_checkout.environment))
    assert done.stdout.split()[1] == "1.0"
    assert (started_checkout.environment / STAMP).read_text() == complete


@pytest.mark.skipif(os.name == "nt", reason="ends a process as only POSIX systems can")
def test_a_start_after_a_kill_waits_for_the_orphaned_pip_and_repairs(started_checkout, tmp_path):
    pid_file = tmp_path / "pid"
    started_checkout.require("tiny-dependency>=1.2", pin="1.5")
    replace_pip(started_checkout, ENDLESS_PIP.format(pid_file=str(pid_file)))
    with subprocess.Popen(
        started_checkout.command(), env=started_checkout.surroundings(), stderr=subprocess.PIPE, text=True
    ) as killed:
        assert killed.stderr is not None
        while "[3/3]" not in killed.stderr.readline():
            pass
        killed.kill()
    assert held(started_checkout) == []
    with subprocess.Popen(
        started_checkout.command(),
        env=started_checkout.surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as repairing:
        assert repairing.stderr is not None
        assert repairing.stderr.readline() == "another start is preparing .venv: waiting for it\n"
        os.kill(int(pid_file.read_text()), signal.SIGKILL)
        output, errors = repairing.communicate()
    assert "[1/3] making an environment" in errors
    assert output.split()[1] == "1.5"


def test_a_pip_that_fails_before_it_installs_leaves_the_environment_usable(started_checkout):
    started_checkout.require("tiny-dependency>=3")
    failed = started_checkout.start()
    assert failed.returncode == 2
    started_checkout.require("tiny-dependency>=1")
    done = started_checkout.start()
    assert (done.stdout.split()[1], done.stderr) == ("1.0", "")


def test_a_pip_that_fails_while_it_installs_leaves_an_unfinished_environment(started_checkout):
    started_checkout.require("tiny-dependency>=1.2", pin="1.5")
    replace_pip(started_checkout, "print('Installing collected packages: x'); raise SystemExit(1)")
    assert started_checkout.start().returncode == 2
    assert held(started_checkout) == []


def test_a_version_that_is_not_offered_is_one_line_with_the_next_step(checkout):
    checkout.require("tiny-dependency>=1", pin="4.0")
    done = checkout.start()
    *_, last = done.stderr.splitlines()
    assert last.startswith("main.py: pip finds no tiny-dependency==4.0 that fits Python")
    assert "start main.py with another Python" in last
    assert "Traceback" not in done.stderr
    assert (done.returncode, done.stdout) == (2, "")


def test_an_application_environment_is_filled_up_for_the_tests(started_checkout):
    started_checkout.require("tiny-dependency>=1", tests=("tiny-dependency>=1",))
    write_stamp(started_checkout.environment, [])
    started_checkout.start()
    only_application = held(started_checkout)
    started_checkout.start("test")
    assert set(only_application) < set(held(started_checkout))


def test_an_older_python_is_told_which_one_is_needed():
    code = "import runpy, sys; sys.version_info = (3, 8, 20); runpy.run_path('main.py', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("Transformer Explorer needs Python 3.11 or newer, and ")
    assert " is Python 3.8: " in done.stderr
