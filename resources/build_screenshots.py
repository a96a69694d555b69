"""Redraw the pictures of the README from the real window: `python -m resources.build_screenshots`."""

from __future__ import annotations

import sys
from pathlib import Path

from explorer.cli import main

FOLDER = Path(__file__).parent / "screenshots"
PICTURES = {
    "explore-light.png": ("--theme", "light", "--cell", "15,2"),
    "explore-dark.png": ("--theme", "dark", "--cell", "15,2"),
    "train-light.png": ("--theme", "light", "--layout", "train", "--train-steps", "500"),
}


def build() -> int:
    """Draw every picture; the exit status of the first that fails, or 0."""
    FOLDER.mkdir(exist_ok=True)
    for name, options in PICTURES.items():
        status = main(["screenshot", *options, "--size", "1440x900", "--out", str(FOLDER / name)])
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(build())
