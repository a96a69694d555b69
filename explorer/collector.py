"""Python's cyclic garbage collector, on the UI thread only.

WORKAROUND(qt-6.11): a collection on a worker thread may destroy a widget there, which crashes the process.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QTimer, Slot

_INTERVAL_MS = 500


class Collector(QObject):
    """Turns automatic collection off; a timer does what it would have done, by the same thresholds."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._was_enabled = gc.isenabled()
        gc.disable()
        self._timer = QTimer(self, interval=_INTERVAL_MS)
        self._timer.timeout.connect(self._on_timer_timeout)
        self._timer.start()

    def close(self) -> None:
        """Delete what Qt was told to delete later, collect once more, then let Python do it again.

        WORKAROUND(qt-6.11): widgets that are left to the end of the process may crash it, for Python lets them go in
        any order.
        """
        self._timer.stop()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        gc.collect()
        if self._was_enabled:
            gc.enable()

    @Slot()
    def _on_timer_timeout(self) -> None:
        for generation in (2, 1, 0):
            if gc.get_count()[generation] > gc.get_threshold()[generation]:
                gc.collect(generation)
                return
