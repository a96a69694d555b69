"""How long a person waits: from the start of the process to the painted window, and to attention on screen.

Each start is a process of its own, told apart from the next by what the disk has cached; the window is the real one.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from tests.bench.measure import Line

_N_STARTS = 5

_PROGRAM = """
import sys, time
from PySide6.QtCore import QTimer
from explorer.app import build, make_application
from explorer.settings.schema import Settings

application = make_application(sys.argv[:1])
explorer = build(application, Settings())

def painted():
    print("painted", time.time(), "torch" in sys.modules, flush=True)

def idle():
    if explorer.controller.is_idle and explorer.store.state.trace is not None:
        print("attention", time.time(), flush=True)
        application.quit()

explorer.window.first_painted.connect(painted)
explorer.controller.idle_changed.connect(idle)
explorer.start_when_painted(None)
explorer.window.show()
QTimer.singleShot(120_000, application.quit)
application.exec()
explorer.close()
"""


@dataclass(frozen=True, kw_only=True)
class Start:
    """Seconds from the start of the process, and whether torch had been imported when the window was painted."""

    painted: float
    attention: float
    torch_was_there: bool


def lines() -> list[Line]:
    """The first start of this run, and the median of the next ones."""
    first, *others = (_start() for _ in range(1 + _N_STARTS))
    bare = statistics.median(_seconds(["-c", "pass"]) for _ in range(_N_STARTS))
    torch = statistics.median(_seconds(["-c", "import torch"]) for _ in range(3))
    painted = statistics.median(start.painted for start in others)
    attention = statistics.median(start.attention for start in others)
    came_first = "before torch" if not any(s.torch_was_there for s in (first, *others)) else "AFTER torch"
    return [
        _line("first start of this run: window painted", "", first.painted, came_first),
        _line("first start of this run: attention on screen", "", first.attention, ""),
        _line("next starts: window painted", f"bare Python {bare:.2f} s", painted, came_first),
        _line("next starts: attention on screen", f"import torch alone {torch:.2f} s", attention, ""),
    ]


def _line(work: str, reference: str, seconds: float, must_be: str) -> Line:
    return Line(work=work, reference=reference, found=f"{seconds:.2f} s", must_be=must_be)


def _start() -> Start:
    """Start the application once, with settings of its own, and read when things happened."""
    with tempfile.TemporaryDirectory() as folder:
        folders = {f"XDG_{kind}_HOME": folder for kind in ("CONFIG", "DATA", "STATE")}
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, **folders}
        began = time.time()
        output = subprocess.run(
            [sys.executable, "-c", _PROGRAM], env=environment, check=True, capture_output=True, text=True
        ).stdout
    told = {line.split()[0]: line.split()[1:] for line in output.splitlines()}
    return Start(
        painted=float(told["painted"][0]) - began,
        attention=float(told["attention"][0]) - began,
        torch_was_there=told["painted"][1] == "True",
    )


def _seconds(arguments: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True)
    return time.perf_counter() - began
