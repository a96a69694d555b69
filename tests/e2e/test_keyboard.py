"""The whole window without a mouse."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QDockWidget, QLineEdit, QToolBar, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from explorer.actions.commands import COMMANDS
from explorer.app import Explorer
from explorer.chrome.centre import Centre
from explorer.chrome.export_dialog import ExportDialog
from explorer.state.app_state import LayoutName
from explorer.state.moves import open_source, pick_head, set_layout
from tests.e2e.conftest import Launch, wait_until_idle

REGIONS = ("top", "left", "centre", "right", "bottom")
AREAS = {
    Qt.DockWidgetArea.LeftDockWidgetArea: "left",
    Qt.DockWidgetArea.RightDockWidgetArea: "right",
    Qt.DockWidgetArea.BottomDockWidgetArea: "bottom",
}


def region(explorer: Explorer, widget: QWidget) -> str:
    """Where in the window it is."""
    place: QWidget | None = widget
    while place is not None:
        if isinstance(place, QToolBar):
            return "top"
        if isinstance(place, Centre):
            return "centre"
        if isinstance(place, QDockWidget):
            return AREAS[explorer.window.dockWidgetArea(place)]
        place = place.parentWidget()
    return "bottom"  # the status line


def tabbed_through(qtbot: QtBot, first: QWidget) -> list[QWidget]:
    """Every widget that Tab comes to, from one until it is there again."""
    first.setFocus()
    seen = [first]
    while True:
        qtbot.keyClick(seen[-1], Qt.Key.Key_Tab)
        widget = QApplication.focusWidget()
        if widget is None or widget in seen:
            assert widget is first, f"Tab turns round at {seen[-1]} and comes to {widget}"
            return seen
        middle = widget.mapTo(widget.window(), widget.rect().center())
        assert widget.isVisible() and widget.window().rect().contains(middle), f"{widget} is out of sight"
        seen.append(widget)


@pytest.mark.parametrize("layout", ["explore", "train", "learn"])
def test_tab_goes_through_the_window_as_one_reads_it(
    launch: Launch, qtbot: QtBot, model_folder: Path, layout: LayoutName
) -> None:
    explorer = launch(model_folder / "translator", "a cat", target="a mat")
    explorer.store.settle(set_layout(layout))
    wait_until_idle(qtbot, explorer)
    explorer.window.activateWindow()
    toolbar = explorer.window.findChild(QToolBar)
    assert toolbar is not None
    (first,) = [button for button in toolbar.findChildren(QToolButton) if button.text() == "Open"]
    seen = tabbed_through(qtbot, first)
    passed = [REGIONS.index(region(explorer, widget)) for widget in seen]
    assert passed == sorted(passed)


def test_a_key_that_shows_a_panel_brings_one_that_stands_behind_another_to_the_front(
    launch: Launch, qtbot: QtBot
) -> None:
    window = launch().window
    messages, card = (window.findChild(QDockWidget, f"dock_{key}") for key in ("messages", "model_card"))
    assert messages and card

    def are_left(*docks: QDockWidget) -> list[bool]:
        """Whether each was moved out of sight, as Qt does with what stands behind."""
        return [dock.x() < 0 for dock in docks]

    window.toggle_panel("messages")
    qtbot.waitUntil(lambda: are_left(messages, card) == [False, True])
    window.toggle_panel("model_card")
    qtbot.waitUntil(lambda: are_left(messages, card) == [True, False])
    window.toggle_panel("model_card")
    assert not window.is_panel_open("model_card")


def test_a_panel_behind_another_asks_nothing_until_it_comes_to_the_front(
    launch: Launch, qtbot: QtBot, model_folder: Path
) -> None:
    explorer = launch()
    explorer.window.toggle_panel("messages")
    explorer.store.apply(open_source(model_folder / "decoder"))
    wait_until_idle(qtbot, explorer)
    assert explorer.window.host("model_card").picture is None
    explorer.window.toggle_panel("model_card")
    wait_until_idle(qtbot, explorer)
    assert explorer.window.host("model_card").picture is not None


class EmacsField(QLineEdit):
    """Takes every key before any shortcut does, as fields on Linux and macOS take those of Emacs."""

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return super().event(event)


def takes(field: QWidget, key: QKeySequence) -> bool:
    """Whether the field keeps the key from being a shortcut."""
    chord = key[0]  # pyright: ignore[reportIndexIssue]  (the stubs lack it)
    event = QKeyEvent(QEvent.Type.ShortcutOverride, chord.key(), chord.keyboardModifiers())
    event.ignore()
    QApplication.sendEvent(field, event)
    return event.isAccepted()


@pytest.fixture
def emacs_field(launch: Launch, qtbot: QtBot, model_folder: Path) -> EmacsField:
    window = launch(model_folder / "decoder", "a cat").window
    field = EmacsField(window.centralWidget())
    window.activateWindow()
    field.show()
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    return field


def test_a_command_runs_by_its_key_while_a_text_is_typed(emacs_field: EmacsField, qtbot: QtBot) -> None:
    qtbot.keyClick(emacs_field, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    assert emacs_field.window().findChild(ExportDialog)


def test_a_text_field_takes_no_key_of_a_command_but_those_of_typing_and_editing(emacs_field: EmacsField) -> None:
    keys = {key for command in COMMANDS for key in command.shortcut.split("|") if "Ctrl" in key}
    undo = {
        key.toString()
        for standard in (QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo)
        for key in QKeySequence.keyBindings(standard)
    }
    assert {key for key in keys if takes(emacs_field, QKeySequence(key))} == keys & (undo | {"Ctrl+Y"})
    assert all(takes(emacs_field, QKeySequence(key)) for key in ("S", "[", "Ctrl+C", "Ctrl+V", "Ctrl+A", "Ctrl+Left"))


def test_every_menu_opens_by_a_key_of_its_own(launch: Launch, model_folder: Path) -> None:
    window = launch(model_folder / "decoder", "a cat").window
    keys = [QKeySequence.mnemonic(action.text()).toString() for action in window.menuBar().actions()]
    assert "Alt+F" in keys and all(keys) and len(set(keys)) == len(keys)


def test_ctrl_y_redoes_in_the_field_and_not_in_the_window(launch: Launch, qtbot: QtBot, model_folder: Path) -> None:
    explorer = launch(model_folder / "decoder", "a cat")
    explorer.store.apply(pick_head(1, 0))
    explorer.store.undo()
    field = next(field for field in explorer.window.findChildren(QLineEdit) if field.text() == "a cat")
    explorer.window.activateWindow()
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    field.end(False)
    qtbot.keyClicks(field, "s")
    field.undo()
    assert field.text() == "a cat"
    qtbot.keyClick(field, Qt.Key.Key_Y, Qt.KeyboardModifier.ControlModifier)
    assert field.text() == "a cats" and explorer.store.state.selection.layer == 0


@pytest.mark.qt_log_ignore("This plugin does not support raise")
def test_a_floating_panel_is_left_to_its_own_window(launch: Launch, qtbot: QtBot, model_folder: Path) -> None:
    explorer = launch(model_folder / "decoder", "a cat")
    dock = explorer.window.findChild(QDockWidget, "dock_inspector")
    assert dock is not None
    dock.setFloating(True)
    explorer.window.activateWindow()
    (first,) = [button for button in explorer.window.findChildren(QToolButton) if button.text() == "Export"]
    assert not any(dock.isAncestorOf(widget) for widget in tabbed_through(qtbot, first))
    dock.setFloating(False)
