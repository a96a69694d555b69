"""The lock under which one start at a time prepares `.venv`."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def one_at_a_time(root: Path) -> Iterator[None]:
    """Let one start at a time prepare `.venv`.

    The lock is inherited by the programs started meanwhile, so that it outlives a killed start whose pip still works.
    """
    with open(root / "main.py", "rb") as file:
        os.set_inheritable(file.fileno(), True)
        if not take_lock(file.fileno()):
            print("another start is preparing .venv: waiting for it", file=sys.stderr)
            while not take_lock(file.fileno()):
                time.sleep(0.5)
        yield


def take_lock(descriptor: int) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # beyond the end: a locked byte of the text could not be read
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        raise
    return True
