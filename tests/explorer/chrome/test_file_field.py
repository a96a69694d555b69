from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from explorer.chrome.file_field import FileField
from explorer.state.given_file import FileKind, GivenFile
from explorer.theme.manager import ThemeManager

CAT = GivenFile(path=Path("/pictures/cat.png"), stamp=None)


def _field(qtbot: QtBot, kind: FileKind = "picture") -> FileField:
    field = FileField(kind)
    qtbot.addWidget(field)
    field.show()
    return field


def _buttons(field: FileField) -> tuple[QPushButton, QToolButton]:
    button, clear = field.findChild(QPushButton), field.findChild(QToolButton)
    assert button is not None and clear is not None
    return button, clear


def test_without_a_file_it_invites_to_open_one(qtbot: QtBot, themes: ThemeManager) -> None:
    assert _field(qtbot).text == "Open a picture…"
    field = _field(qtbot, "sound")
    assert field.text == "Open a sound…" and not _buttons(field)[1].isVisible()


def test_a_click_asks_for_a_file_of_its_kind(qtbot: QtBot, themes: ThemeManager) -> None:
    field = _field(qtbot, "sound")
    with qtbot.waitSignal(field.asked) as asked:
        qtbot.mouseClick(_buttons(field)[0], Qt.MouseButton.LeftButton)
    assert asked.args == ["sound"]


def test_the_file_is_named_whole_in_the_tooltip_and_can_be_taken_away(qtbot: QtBot, themes: ThemeManager) -> None:
    field = _field(qtbot)
    field.set_file(CAT)
    button, clear = _buttons(field)
    assert field.text == "cat.png" and button.toolTip().startswith(str(CAT.path))
    with qtbot.waitSignal(field.cleared) as cleared:
        qtbot.mouseClick(clear, Qt.MouseButton.LeftButton)
    assert cleared.args == ["picture"]
    field.set_file(None)
    assert field.text == "Open a picture…" and not clear.isVisible()


def test_what_was_done_to_the_file_is_in_the_tooltip(qtbot: QtBot, themes: ThemeManager) -> None:
    field = _field(qtbot)
    field.set_file(CAT)
    field.set_file(CAT, ("cat.png: resized from 640 x 480 to 224 x 224 pixels",))
    assert "resized from 640 x 480 to 224 x 224 pixels" in _buttons(field)[0].toolTip()


def test_a_long_name_leaves_room_for_what_stands_beside_it(qtbot: QtBot, themes: ThemeManager) -> None:
    field = _field(qtbot)
    field.set_file(GivenFile(path=Path("/" + 200 * "x" + ".png"), stamp=None))
    assert field.text.endswith(".png") and len(field.text) < 100
