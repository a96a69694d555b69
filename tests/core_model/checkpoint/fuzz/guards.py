"""What opening a file must never do - hang, take memory, reach outside its folder - refused by the system itself.

Python tells audit hooks of every file, process and connection before it is there; the bound on address space and the
alarm are the kernel's. What is refused is raised past every `except Exception`. Linux only.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

SECONDS = 10
ROOM_BYTES = 400 << 20
_PROGRAM = tuple(os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, Path(__file__).parents[4]))
_SYSTEM = ("/proc/", "/sys/", "/dev/null", "/dev/urandom")
_NEVER = (
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn", "subprocess.Popen",
    "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate",
    "os.utime", "os.setxattr", "os.removexattr", "shutil.", "tempfile.",
    "socket.", "urllib.", "http.client.", "ftplib.", "smtplib.",
    "pickle.find_class", "code.__new__",
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Broken(BaseException):
    """A rule was broken: what was done, or was about to be."""


class _Watch:
    """The folder that may be read now; None: nobody watches."""

    folder: str | None = None


_watch = _Watch()


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    """The audit hook: it stays for the process's life, and does nothing while nobody watches."""
    folder = _watch.folder
    if folder is None:
        return
    if event == "open":
        _check_open(folder, *arguments)
    elif event.startswith(_NEVER):
        _refuse(f"{event} {arguments!r:.300}")


def _check_open(folder: str, path: object, mode: object, flags: int) -> None:
    if not isinstance(path, str | bytes | os.PathLike):
        return  # a file that is open already
    if flags & _WRITING:
        _refuse(f"opened {path!r} to write")
    real = os.path.realpath(os.fsdecode(path))
    if not real.startswith((f"{folder}{os.sep}", *_PROGRAM, *_SYSTEM)):
        _refuse(f"opened {path!r}, which is outside the folder")


def _refuse(what: str) -> None:
    raise Broken(what)


def _on_alarm(*_: object) -> None:
    raise Broken(f"took more than {SECONDS} s")


@cache
def _start_hearing() -> None:
    sys.addaudithook(_hear)


@contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """Whoever runs in the block may read `folder` and the program itself, for SECONDS, in ROOM_BYTES more memory."""
    _start_hearing()
    wrote_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    handler = signal.signal(signal.SIGALRM, _on_alarm)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + ROOM_BYTES, hard))
    _watch.folder = os.path.realpath(folder)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _watch.folder = None
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, handler)
        sys.dont_write_bytecode = wrote_bytecode


def _address_space() -> int:
    """Bytes this process has mapped."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
