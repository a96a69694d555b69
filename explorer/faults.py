"""Faults of the program itself: into the log, and to the person with the traceback. Nothing is swallowed."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

import platformdirs
from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

from explorer.settings.store import APPLICATION
from explorer.state.app_state import Notice

_LOG = logging.getLogger(__name__)
_LOG_BYTES = 1 << 20
_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


def log_path() -> Path:
    """Where this system keeps an application's log (XDG_STATE_HOME respected)."""
    return Path(platformdirs.user_log_dir(APPLICATION, appauthor=False)) / "explorer.log"


def start_log() -> None:
    """Write warnings and worse of the whole program to the log file. Raises OSError."""
    path = log_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=2, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)


class FaultHooks:
    """Catches what nobody caught, on any thread, until removed. `report` may be called from any thread."""

    def __init__(self, report: Callable[[Notice], None]) -> None:
        self._report = report
        self._before = sys.excepthook, threading.excepthook
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception
        qInstallMessageHandler(_log_qt_message)

    def remove(self) -> None:
        """Put back what was there before."""
        sys.excepthook, threading.excepthook = self._before
        qInstallMessageHandler(None)

    def _on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            self._before[0](kind, error, trace)
            return
        details = "".join(traceback.format_exception(kind, error, trace))
        _LOG.error("uncaught\n%s", details)
        cause = error.__cause__ or error
        self._report(Notice(severity="error", text=f"A fault of this program: {cause!r}", details=details))

    def _on_thread_exception(self, arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None:
            self._on_exception(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)


def _log_qt_message(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
    logging.getLogger("qt").log(_LEVELS[kind], "%s", text)
