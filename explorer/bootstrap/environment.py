"""Where things are in a virtual environment, and the stamp that says what it is known to hold."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from explorer.bootstrap.requirements import PYTHON

STAMP = "transformer-explorer.json"


def interpreter(environment: Path) -> Path:
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def site_packages(environment: Path) -> list[str]:
    return [str(path) for path in (*environment.glob("lib/python3*/site-packages"), environment / "Lib/site-packages")]


class Stamp(NamedTuple):
    """The Python of an environment and the digests of the requirements that it holds: none while it is worked on."""

    python: str
    complete: list[str]


def read_stamp(environment: Path) -> Stamp | None:
    """What a set-up wrote here, None where none ever worked. A stamp that cannot be read holds nothing."""
    try:
        return Stamp(**json.loads((environment / STAMP).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        return Stamp("", [])


def write_stamp(environment: Path, complete: Sequence[str]) -> None:
    """Replace the stamp in one step, so that a process killed at any moment leaves the old or the new one."""
    draft = environment / f"{STAMP}.new"
    draft.write_text(json.dumps(Stamp(PYTHON, list(complete))._asdict()), encoding="utf-8")
    os.replace(draft, environment / STAMP)
