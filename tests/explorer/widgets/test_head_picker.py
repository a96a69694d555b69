"""Stepping, typing and being told: only the user's changes are announced."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QToolButton

from explorer.widgets.head_picker import HeadPicker


@pytest.fixture
def picker(qtbot):
    picker = HeadPicker()
    qtbot.addWidget(picker)
    picker.set_sizes(2, 4)
    picker.set_head(1, 2)
    with qtbot.waitExposed(picker):
        picker.show()
    return picker


def button(picker: HeadPicker, name: str) -> QToolButton:
    return next(one for one in picker.findChildren(QToolButton) if one.accessibleName().startswith(name))


def field(picker: HeadPicker, name: str) -> QLineEdit:
    return next(one for one in picker.findChildren(QLineEdit) if one.accessibleName() == name)


def test_a_step_announces_layer_and_head(qtbot, picker):
    with qtbot.waitSignal(picker.head_picked) as picked:
        button(picker, "Next head").click()
    assert picked.args == [1, 3]
    with qtbot.waitSignal(picker.head_picked) as picked:
        button(picker, "Previous layer").click()
    assert picked.args == [0, 3]


def test_there_is_no_step_beyond_the_ends(picker):
    assert not button(picker, "Next layer").isEnabled()
    assert button(picker, "Previous layer").isEnabled()
    picker.set_head(0, 0)
    assert not button(picker, "Previous layer").isEnabled()
    assert not button(picker, "Previous head").isEnabled()


def test_a_typed_number_is_taken_on_enter(qtbot, picker):
    head = field(picker, "head")
    head.selectAll()
    qtbot.keyClicks(head, "3")
    with qtbot.waitSignal(picker.head_picked) as picked:
        qtbot.keyClick(head, Qt.Key.Key_Return)
    assert picked.args == [1, 3]


def test_a_number_too_large_cannot_be_typed(qtbot, picker):
    head = field(picker, "head")
    head.selectAll()
    qtbot.keyClicks(head, "9")
    with qtbot.assertNotEmitted(picker.head_picked):
        qtbot.keyClick(head, Qt.Key.Key_Return)


def test_arrow_keys_step_the_field_with_the_focus(qtbot, picker):
    with qtbot.waitSignal(picker.head_picked) as picked:
        qtbot.keyClick(field(picker, "head"), Qt.Key.Key_Up)
    assert picked.args == [1, 3]


def test_being_told_is_not_announced(qtbot, picker):
    with qtbot.assertNotEmitted(picker.head_picked):
        picker.set_head(0, 1)
        picker.set_sizes(1, 1)
    assert (field(picker, "layer").text(), field(picker, "head").text()) == ("0", "0")


def test_a_field_names_the_keys_that_step_and_no_range_where_there_is_none(picker):
    assert field(picker, "layer").toolTip() == "Type a number from 0 to 1, or step ([ ])."
    assert field(picker, "head").toolTip() == "Type a number from 0 to 3, or step (, .)."
    picker.set_sizes(1, 1)
    assert field(picker, "layer").toolTip() == "There is only 0."
