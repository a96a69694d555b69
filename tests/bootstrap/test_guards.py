"""The guards of tests/conftest.py, each against a test that it must fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PREAMBLE = """
import contextlib, os, socket, threading
from pathlib import Path
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget
kept = []
"""
GUILTY = {
    "thread": (
        "wait = threading.Event(); kept.append(wait); threading.Thread(target=wait.wait, daemon=True).start()",
        "Thread-1",
    ),
    "timer": ("timer = QTimer(); kept.append(timer); timer.start(60_000)", "QTimer"),
    "widget": ("kept.append(QWidget(windowTitle='forgotten'))", "QWidget"),
    "connection": (
        "connection = socket.socket()\n    with contextlib.suppress(OSError), connection:\n"
        "        connection.connect(('192.0.2.1', 80))",
        "192.0.2.1",
    ),
    "lookup": ("with contextlib.suppress(OSError):\n        socket.getaddrinfo('host.example', 80)", "host.example"),
    "qt_warning": ("from PySide6.QtCore import qWarning\n    qWarning('beware')", "beware"),
}
INNOCENT = """
def test_innocent(qtbot):
    widget = QWidget()
    qtbot.addWidget(widget)
    QTimer(widget).start(60_000)
    thread = threading.Thread(target=lambda: None)
    thread.start()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass
    assert "user" in os.environ["XDG_CONFIG_HOME"]
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says about the tests above when it runs them with the conftest and settings of this project."""
    folder = tmp_path_factory.mktemp("guarded")
    tests = [f"def test_{name}(qtbot):\n    {body}\n" for name, (body, _) in GUILTY.items()]
    (folder / "test_guarded.py").write_text("\n".join([PREAMBLE, *tests, INNOCENT]))
    project = Path(__file__).parents[2]
    (folder / "conftest.py").write_bytes((project / "tests/conftest.py").read_bytes())
    command = [sys.executable, "-m", "pytest", "-c", project / "pyproject.toml", "--rootdir", folder, folder]
    return subprocess.run([*command, "-p", "no:cacheprovider"], capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", GUILTY)
def test_a_test_that_leaves_something_behind_fails_and_says_what(report, name):
    _, shown = GUILTY[name]
    failure = report.partition(f"test_{name} ___")[2].partition("\n____")[0]
    assert shown in failure


def test_a_test_that_tidies_up_passes(report):
    *_, summary = report.splitlines()
    assert "test_innocent" not in report
    # Only the Qt warning fails while the test runs; the others are found when it is over.
    assert f"1 failed, {len(GUILTY)} passed, {len(GUILTY) - 1} errors" in summary
