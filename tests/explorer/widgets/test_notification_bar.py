"""Messages stay until dismissed, the newest on top."""

from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton, QToolButton, QWidget

from explorer.widgets.notification_bar import NotificationBar


@pytest.fixture
def bar(qtbot, themes):
    window = QWidget()
    qtbot.addWidget(window)
    bar = NotificationBar(themes, window)
    window.resize(600, 300)
    bar.resize(600, 60)
    with qtbot.waitExposed(window):
        window.show()
    yield bar  # the window lives as long as this frame


def shown(bar: NotificationBar) -> list[str]:
    return [label.text() for label in bar.findChildren(QLabel) if label.isVisible() and label.text()]


def test_the_bar_is_hidden_while_it_has_nothing_to_say(bar):
    assert not bar.isVisible()
    bar.show_message("info", "Opened tiny-lm.")
    assert bar.isVisible()
    bar.dismiss()
    assert not bar.isVisible()


def test_the_newest_message_is_shown_and_the_earlier_are_counted(qtbot, bar):
    counts = []
    bar.count_changed.connect(counts.append)
    bar.show_message("info", "first")
    bar.show_message("error", "second")
    assert shown(bar) == ["second", "1 earlier"]
    bar.dismiss()
    assert shown(bar) == ["first"]
    assert counts == [1, 2, 1]


def test_the_same_message_is_not_shown_twice(bar):
    bar.show_message("warning", "same")
    bar.show_message("warning", "same")
    assert len(bar.messages) == 1


def test_details_open_on_demand(qtbot, bar):
    bar.show_message("error", "It failed.", "Traceback: line 3")
    text = bar.findChild(QPlainTextEdit)
    assert not text.isVisible()
    next(one for one in bar.findChildren(QToolButton) if one.text() == "Details").click()
    assert text.isVisible()
    assert text.toPlainText() == "Traceback: line 3"


def test_what_a_message_offers_is_opened_once(qtbot, bar):
    bar.show_message("info", "The training of sort-1 was cut off.", opens=Path("/runs/sort-1"))
    (button,) = [one for one in bar.findChildren(QPushButton) if one.isVisible()]
    with qtbot.waitSignal(bar.open_requested) as opened:
        button.click()
    assert opened.args == [Path("/runs/sort-1")] and not bar.isVisible()
    bar.show_message("info", "Nothing to open.")
    assert not button.isVisible()


def test_level_and_text_are_told_to_a_screen_reader(bar):
    bar.show_message("warning", "3 weights are not used.")
    assert bar.accessibleName() == "warning: 3 weights are not used."
