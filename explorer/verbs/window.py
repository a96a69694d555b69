"""open: show a checkpoint in the window. Without a path, the bundled sample."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from core_model.errors import CheckpointError
from explorer.preflight import check_window
from explorer.verbs.source import add_path, assumed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Start the window with a checkpoint on screen."
    add_path(parser)


def run(arguments: argparse.Namespace) -> int:
    path: Path | None = getattr(arguments, "path", None)
    if path is not None:
        path = Path(os.path.abspath(path.expanduser()))  # it is remembered, and the next start is elsewhere
    if path is not None and not path.exists():
        raise CheckpointError(f"There is no file or folder {path}: check the path", path=path)
    check_window()
    from explorer.app import run as run_application  # Qt, only once it is known to start

    return run_application(path, () if path is None else assumed(arguments))
