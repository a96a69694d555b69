"""What tests of painted widgets share: the themes, and a window on screen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication

from explorer.theme.manager import ThemeChoice, ThemeManager


@pytest.fixture
def themes(qapp: QApplication) -> Iterator[ThemeManager]:
    """The light theme, whatever the system says."""
    manager = ThemeManager(qapp, ThemeChoice.LIGHT)
    yield manager
    qapp.setStyleSheet("")
    manager.deleteLater()
