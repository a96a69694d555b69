"""The way from a worker thread to the UI thread: one queued signal."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal


class Bridge(QObject):
    """Lives on the UI thread; workers call `deliver`. Connect `arrived` queued."""

    arrived = Signal(object)
    """An Outcome, or a Notice about something that no question asked for."""

    def deliver(self, message: object) -> None:
        """Hand a frozen record over. Any thread."""
        self.arrived.emit(message)
