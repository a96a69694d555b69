"""Make `.venv` and fill it with the pinned packages, saying what is done and how far it is."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from explorer.bootstrap.environment import STAMP, interpreter, read_stamp, site_packages, write_stamp
from explorer.bootstrap.failures import SetupError, explain_output
from explorer.bootstrap.progress import PipProgress, Report, each_second
from explorer.bootstrap.requirements import PYTHON, Requirements, installed_version, is_within, read_requirements


def install(environment: Path, wanted: Requirements, root: Path) -> None:
    """Make `environment` where there is none that can be trusted, and install what is wanted into it."""
    report = Report(sys.stderr)
    started = time.monotonic()
    report.line(f"Transformer Explorer: preparing {environment} (once)")
    stamp = read_stamp(environment)
    held = stamp.complete if stamp else None
    if held == [] or (stamp and stamp.python != PYTHON) or not interpreter(environment).exists():
        report.line(f"[1/3] making an environment with Python {PYTHON}")
        make_environment(environment)
        held = []
    write_stamp(environment, [])
    progress = PipProgress(report, environment, expected=0 if held else wanted.n_pins)
    try:
        run_pip(environment, wanted.lines, root / "constraints.txt", progress)
    except BaseException:
        if not progress.installing:  # pip changed nothing yet, so what was there before is still whole
            if held is None:
                (environment / STAMP).unlink()
            else:
                write_stamp(environment, held)
        raise
    base = read_requirements(root, with_tests=False)
    write_stamp(environment, sorted({base.digest, wanted.digest}))
    report.line(f"ready after {time.monotonic() - started:.0f} s")


def make_environment(environment: Path) -> None:
    """Make an empty virtual environment in the place of what is there, stamped as unfinished from the beginning."""
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        advice = f"run 'sudo apt install python{PYTHON}-venv'" if shutil.which("apt-get") else "install them"
        raise SetupError(f"Python {PYTHON} lacks its modules venv and ensurepip here: {advice}, then start again")
    environment.mkdir(exist_ok=True)
    write_stamp(environment, [])
    for child in environment.iterdir():
        if child.name != STAMP:
            shutil.rmtree(child) if child.is_dir() and not child.is_symlink() else child.unlink()
    # Not sys.executable, which may lie in the environment that was just emptied.
    python = getattr(sys, "_base_executable", sys.executable)
    made = subprocess.run(
        [python, "-m", "venv", str(environment)], capture_output=True, text=True, errors="replace", close_fds=False
    )
    if made.returncode:
        raise SetupError(explain_output([*made.stdout.splitlines(), *made.stderr.splitlines()], environment))


def run_pip(environment: Path, lines: Sequence[str], constraints: Path, progress: PipProgress) -> None:
    """Install with the environment's pip, under the person's own pip configuration, and follow its output."""
    shows_progress = is_within(installed_version("pip", site_packages(environment)) or "0", ">=24.1")
    command = [str(interpreter(environment)), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    command += ["--progress-bar", "raw" if shows_progress else "off", "--constraint", str(constraints), *lines]
    said: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        close_fds=False,  # passes on the lock
    ) as process:
        assert process.stdout is not None
        for line in each_second(process.stdout):
            if line is None:
                progress.tick()
            else:
                said.append(line)
                progress.read(line)
    progress.report.finish()
    if process.returncode:
        raise SetupError(explain_output(said, environment))
