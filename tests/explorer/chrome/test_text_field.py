from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from pytestqt.qtbot import QtBot

from explorer.chrome.text_field import TextField

LONG = "a cat sat on a mat. " * 2000


def _field(qtbot: QtBot) -> TextField:
    field = TextField()
    qtbot.addWidget(field)
    return field


def _clear(field: TextField) -> QAction:
    return field.actions()[-1]


def test_a_text_set_by_the_program_is_not_reported_as_typed(qtbot: QtBot) -> None:
    field = _field(qtbot)
    with qtbot.assertNotEmitted(field.edited):
        field.set_text("a cat")
    assert field.full_text == "a cat"


def test_typing_is_reported_and_the_end_of_it(qtbot: QtBot) -> None:
    field = _field(qtbot)
    with qtbot.waitSignal(field.edited):
        qtbot.keyClicks(field, "a")
    with qtbot.waitSignal(field.finished):
        qtbot.keyClick(field, Qt.Key.Key_Return)


def test_a_very_long_text_is_kept_whole_and_shown_by_its_beginning(qtbot: QtBot) -> None:
    field = _field(qtbot)
    field.set_text(LONG)
    assert field.full_text == LONG
    assert field.text().endswith("(40,000 characters)")
    assert field.isReadOnly()


def test_clearing_a_very_long_text_makes_the_line_editable_again(qtbot: QtBot) -> None:
    field = _field(qtbot)
    field.set_text(LONG)
    with qtbot.waitSignal(field.finished):
        _clear(field).trigger()
    assert field.full_text == ""
    assert not field.isReadOnly()


def test_there_is_nothing_to_clear_in_an_empty_line(qtbot: QtBot) -> None:
    field = _field(qtbot)
    assert not _clear(field).isVisible()
    field.set_text("a")
    assert _clear(field).isVisible()


def test_the_cursor_stays_when_the_same_text_is_set_again(qtbot: QtBot) -> None:
    field = _field(qtbot)
    qtbot.keyClicks(field, "a cat")
    field.setCursorPosition(2)
    field.set_text("a cat")
    assert field.cursorPosition() == 2
