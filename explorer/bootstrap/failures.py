"""The sentence for each way in which a set-up fails and that a person can mend."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from core_model.errors import CoreError
from explorer.bootstrap.requirements import PYTHON


class SetupError(CoreError):
    """The environment cannot be prepared."""


FULL_DISK = "the disk is full: free 4 GB or more for {0} and the temporary folder, then start again"
EXPLANATIONS = {
    r"Errno 28\b|No space left on device|not enough space on the disk|Disk quota exceeded": FULL_DISK,
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|Network is unreachable": (
        "the package index does not answer: connect to the network, or tell pip its proxy or index, then start again"
    ),
    r"(?:No matching distribution found for|The user requested \(constraint\)) (\S+)": (
        "pip finds no {1} that fits Python " + PYTHON + f" on {sys.platform}: start main.py with another Python, "
        "or tell pip an index that has it, and no constraint against it"
    ),
}


def explain_os_error(error: OSError, environment: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return FULL_DISK.format(environment)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"{error.filename or environment} cannot be written ({error.strerror}): put the checkout into a folder of "
            "your own, or start main.py with a Python that has the packages of pyproject.toml"
        )
    return f"{environment} cannot be prepared: {error}"


def explain_output(lines: Sequence[str], environment: Path) -> str:
    """The sentence for what venv or pip said before it gave up."""
    output = "\n".join(lines)
    for pattern, sentence in EXPLANATIONS.items():
        if match := re.search(pattern, output):
            return sentence.format(environment, *match.groups())
    log = environment / "setup.log"
    log.write_text(output, encoding="utf-8")
    errors = [line for line in lines if line.startswith("ERROR")] or list(lines[-1:])
    return f"{environment} could not be filled: {' '.join(errors)}; everything that was said is in {log}"
