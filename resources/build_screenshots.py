"""Redraw the pictures of the README from the real window: `python -m resources.build_screenshots`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "screenshots"
PICTURES = {
    "explore-light.png": ("--theme", "light", "--cell", "15,2"),
    "explore-dark.png": ("--theme", "dark", "--cell", "15,2"),
    "train-light.png": ("--theme", "light", "--layout", "train", "--train-steps", "500"),
}
_COMMAND_LINE = "import sys; from explorer.cli import main; sys.exit(main())"


def build() -> int:
    """Draw each picture in a process of its own, for Qt starts once; the status of the first that fails, or 0."""
    FOLDER.mkdir(exist_ok=True)
    for name, options in PICTURES.items():
        arguments = ("screenshot", *options, "--size", "1440x900", "--out", str(FOLDER / name))
        done = subprocess.run([sys.executable, "-c", _COMMAND_LINE, *arguments], cwd=FOLDER.parents[1])
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(build())
