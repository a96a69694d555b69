"""What holds for every test: no display, no network, folders of its own, and nothing left behind.

Threads, Qt timers and top-level widgets that outlive their test fail it, and the message says where they were started.
"""

from __future__ import annotations

import errno
import gc
import os
import socket
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

# Read by Qt and by torch when they are first imported, and by the processes that tests start.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ["HF_HUB_OFFLINE"] = "1"

# How long a thread that was told to stop may take to end.
SECONDS_TO_END = 5.0

FAILED = pytest.StashKey[bool]()

hypothesis.settings.register_profile("unhurried", deadline=None)  # two busy cores make any deadline a lottery
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=2500)
hypothesis.settings.load_profile("unhurried")


def pytest_sessionstart() -> None:
    """Collect cycles between tests only: a collection on a worker thread may destroy a widget there and crash."""
    gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report: pytest.TestReport = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


# The world outside


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One cache for the whole run: matplotlib, for one, looks through all fonts to fill an empty one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def user_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh place for settings, recent files and runs, so that no test sees the user's or another test's."""
    folder = tmp_path_factory.mktemp("user")
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(folder / variable))
    return folder


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse to look up or connect to any other machine, and fail the test even when the refusal was handled."""
    attempts: list[object] = []

    def guarded(function: Callable, host_of: Callable[[tuple], object]) -> Callable:
        def call(*arguments, **keywords):
            host = host_of(arguments)
            if host is None or str(host).startswith("127.") or host in ("localhost", "::1", ""):
                return function(*arguments, **keywords)
            attempts.append(host)
            raise OSError(errno.ENETUNREACH, f"tests have no network, and {host} is not this machine")

        return call

    def host_of_address(arguments: tuple) -> object:
        connecting, address = arguments
        return address[0] if connecting.family in (socket.AF_INET, socket.AF_INET6) else None

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, guarded(getattr(socket.socket, name), host_of_address))
    monkeypatch.setattr(socket, "getaddrinfo", guarded(socket.getaddrinfo, lambda arguments: arguments[0]))
    yield
    if attempts:
        pytest.fail(f"the test reached for the network: {attempts}", pytrace=False)


# Nothing left behind


class Starts:
    """Remembers where each thread and timer was started, by a wrapper around the `start` of its class."""

    def __init__(self) -> None:
        self.places: weakref.WeakKeyDictionary[object, str] = weakref.WeakKeyDictionary()

    def watch(self, patch: pytest.MonkeyPatch, kind: type) -> None:
        start = kind.start

        def remembering(started, *arguments):
            caller = sys._getframe(1)
            self.places[started] = f"{caller.f_code.co_filename}:{caller.f_lineno}"
            return start(started, *arguments)

        patch.setattr(kind, "start", remembering)

    def describe(self, started: object) -> str:
        return f"{started!r} started at {self.places.get(started, 'an unknown place')}"


@pytest.fixture(scope="session", autouse=True)
def starts() -> Iterator[Starts]:
    from PySide6.QtCore import QThread, QTimer

    starts = Starts()
    with pytest.MonkeyPatch.context() as patch:
        for kind in (threading.Thread, QThread, QTimer):
            starts.watch(patch, kind)
        yield starts


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest, starts: Starts) -> Iterator[None]:
    """Fail the test that leaves a thread running, a timer active or a top-level widget alive."""
    from PySide6.QtWidgets import QApplication

    threads_before = set(threading.enumerate())
    widgets_before = set(QApplication.topLevelWidgets())
    yield
    finish_deletions()
    if request.node.stash.get(FAILED, False):
        return  # its traceback keeps alive what it used
    left = [starts.describe(thread) for thread in running_threads(threads_before)]
    left += [starts.describe(timer) for timer in active_timers(starts)]
    if set(QApplication.topLevelWidgets()) - widgets_before:
        gc.collect()  # an older object may hold them in a cycle
    widgets = set(QApplication.topLevelWidgets()) - widgets_before
    left += [f"{widget!r} with the title {widget.windowTitle()!r}" for widget in widgets]
    if left:
        pytest.fail("the test left behind:\n  " + "\n  ".join(left), pytrace=False)


def finish_deletions() -> None:
    """Let go of what the test made: unreachable cycles, which are young, and what Qt was told to delete later."""
    from PySide6.QtCore import QCoreApplication, QEvent

    gc.collect(1)
    if QCoreApplication.instance():
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def running_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    """Python's threads that are new and still run after they have had time to end."""
    new = [thread for thread in threading.enumerate() if thread not in before]
    threads = [thread for thread in new if not isinstance(thread, threading._DummyThread)]  # not threads of Qt or torch
    for thread in threads:
        thread.join(SECONDS_TO_END)
    return [thread for thread in threads if thread.is_alive()]


def active_timers(starts: Starts) -> list[object]:
    """Qt's timers and threads that still run. They are stopped, so that only the test that left them fails."""
    import shiboken6
    from PySide6.QtCore import QThread, QTimer

    active = []
    for started in list(starts.places):
        if isinstance(started, QTimer | QThread) and shiboken6.isValid(started):
            if isinstance(started, QTimer) and started.isActive():
                active.append(started)
                started.stop()
            elif isinstance(started, QThread) and not started.wait(int(SECONDS_TO_END * 1000)):
                active.append(started)
    return active
