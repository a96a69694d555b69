"""What a start loads before the window is on screen."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"torch", "matplotlib", "transformers"}


@pytest.mark.parametrize("module", ["explorer.cli", "explorer.verbs.window", "explorer.app", "explorer.main_window"])
def test_the_window_comes_before_torch_and_matplotlib(module):
    code = f"import sys, {module}; print(sorted({HEAVY} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
