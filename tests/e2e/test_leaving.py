"""The way out while something still computes, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUSY = """
import sys
from PySide6.QtCore import QTimer
from explorer import app

def compute(*_):
    import torch
    torch.set_num_threads(1)
    x = torch.ones(3000, 3000)
    busy.append(x)
    while True:
        x = torch.relu(x @ x)  # never looks at its token

def leave():
    if busy:
        window.close()
    else:
        QTimer.singleShot(50, leave)

busy = []
app._LANE_PATIENCE = 0.1
app.Engine.answer = compute
build = app.build
def built(*arguments, **options):
    global window
    explorer = build(*arguments, **options)
    window = explorer.window
    leave()
    return explorer
app.build = built
sys.exit(app.run(None))
"""


def test_a_lane_that_does_not_stop_cannot_abort_the_way_out(tmp_path: Path) -> None:
    folders = {name: str(tmp_path) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
    environment = {**os.environ, **folders, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", BUSY], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, "terminate" in done.stderr) == (0, False), done.stderr
    assert list(tmp_path.rglob("settings.json"))
