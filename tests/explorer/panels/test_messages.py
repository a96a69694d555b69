"""The list of what was said: never blank, newest first, in the colours of the theme."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QLabel, QListWidget, QToolButton
from pytestqt.qtbot import QtBot

from explorer.panels.messages import MessagesPanel
from explorer.state.app_state import AppState, Notice
from explorer.theme.colors import DARK
from explorer.theme.manager import ThemeChoice, ThemeManager

SAID = (Notice(severity="info", text="Saved"), Notice(severity="warning", text="Disk is full", details="47 bytes left"))


@pytest.fixture
def panel(qtbot: QtBot, themes: ThemeManager) -> Iterator[MessagesPanel]:
    panel = MessagesPanel(themes)
    for widget in (panel, *panel.controls()):
        qtbot.addWidget(widget)
    with qtbot.waitExposed(panel):
        panel.show()
    yield panel


def messages(panel: MessagesPanel) -> QListWidget:
    found = panel.findChild(QListWidget)
    assert found is not None
    return found


def test_before_the_first_message_it_says_what_will_stand_here(panel: MessagesPanel) -> None:
    panel.show_state(AppState())
    said = [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]
    assert any(text.startswith("Nothing has been said yet") for text in said)
    panel.show_state(AppState(notices=SAID))
    assert messages(panel).isVisible()


def test_the_newest_is_first_and_can_be_copied_with_its_details(panel: MessagesPanel) -> None:
    (copy,) = panel.controls()
    assert isinstance(copy, QToolButton) and not copy.isEnabled()
    panel.show_state(AppState(notices=SAID))
    assert [messages(panel).item(row).text() for row in range(2)] == ["Disk is full", "Saved"]
    copy.click()
    assert QGuiApplication.clipboard().text() == "Disk is full\n\n47 bytes left"


def test_signs_take_the_colours_of_another_theme(panel: MessagesPanel, themes: ThemeManager) -> None:
    panel.show_state(AppState(notices=SAID))
    themes.set_choice(ThemeChoice.DARK)
    image = messages(panel).item(0).icon().pixmap(QSize(64, 64)).toImage().convertToFormat(QImage.Format.Format_ARGB32)
    colors = {
        image.pixelColor(x, y).name() for x in range(64) for y in range(64) if image.pixelColor(x, y).alpha() == 255
    }
    assert DARK.warning in colors
