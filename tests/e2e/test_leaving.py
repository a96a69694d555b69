"""The way out while something still computes, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from core_model.checkpoint import open_checkpoint

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


TRAINING = """
import sys
from PySide6.QtCore import QTimer
from explorer import app
from explorer.state.training_moves import set_draft

def train():
    explorer.store.settle(set_draft(task="copy", steps=10**6, d_model=16, n_heads=2, n_layers=1, d_hidden=16))
    explorer.trainer.start()
    explorer.trainer.advanced.connect(say)

def say(snapshot):
    print("training", flush=True)
    explorer.trainer.advanced.disconnect(say)

build = app.build
def built(*arguments, **options):
    global explorer
    explorer = build(*arguments, **options)
    explorer.window.first_painted.connect(train)
    return explorer
app.build = built
sys.exit(app.run(None))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    folders = {name: str(tmp_path) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
    return {**os.environ, **folders, "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_closes_the_window_and_the_training_is_saved(tmp_path: Path, environment, number) -> None:
    command = [sys.executable, "-c", TRAINING]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None and running.stdout.readline() == "training\n"
        running.send_signal(number)
        _, err = running.communicate(timeout=120)
    assert (running.returncode, "Traceback" in err) == (128 + number, False), err
    (run,) = tmp_path.rglob("copy-1")
    with open_checkpoint(run) as checkpoint:
        assert checkpoint.info.refusal is None


def test_a_lane_that_does_not_stop_cannot_abort_the_way_out(tmp_path: Path, environment) -> None:
    done = subprocess.run([sys.executable, "-c", BUSY], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, "terminate" in done.stderr) == (0, False), done.stderr
    assert list(tmp_path.rglob("settings.json"))
