"""Labels that give way, rows that do not move, progress that does not flicker, frames with one menu."""

import pytest
from PySide6.QtGui import QAction, QPalette
from PySide6.QtWidgets import QLabel, QSpinBox, QToolButton, QWidget

from explorer.theme.metrics import TITLE_ROW
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.field_row import FieldRow
from explorer.widgets.panel_frame import PanelFrame
from explorer.widgets.progress_line import ProgressLine


@pytest.fixture
def window(qtbot):
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(400, 300)
    with qtbot.waitExposed(window):
        window.show()
    return window


def test_a_cut_label_is_whole_in_its_tooltip(window):
    label = ElidedLabel("a name much longer than its room", window)
    label.resize(60, 20)
    label.show()
    assert label.toolTip() == "a name much longer than its room"
    label.resize(label.sizeHint())
    assert label.toolTip() == ""


def test_a_label_never_asks_for_more_than_it_can_give_up():
    label = ElidedLabel("a long name")
    assert label.minimumSizeHint().width() == 0
    assert label.sizeHint().width() >= label.fontMetrics().horizontalAdvance("a long name")


def test_a_message_does_not_move_the_form(window):
    row = FieldRow("heads", QSpinBox(), unit="per layer", tooltip="Attention heads of a layer.", parent=window)
    height = row.sizeHint().height()
    row.set_error("5 does not divide 64.")
    assert row.sizeHint().height() == height
    row.set_error("")
    row.set_hint("0.2 million parameters")
    assert row.sizeHint().height() == height


def test_an_error_covers_the_hint_and_is_told_to_a_screen_reader(window):
    row = FieldRow("heads", QSpinBox(), parent=window)
    message = row.findChildren(ElidedLabel)[0]
    row.set_hint("0.2 million parameters")
    row.set_error("5 does not divide 64.")
    assert message.text().endswith("5 does not divide 64.")
    assert message.foregroundRole() is QPalette.ColorRole.BrightText
    assert row.editor.accessibleDescription() == "5 does not divide 64."
    row.set_error("")
    assert message.text() == "0.2 million parameters"
    assert message.foregroundRole() is QPalette.ColorRole.PlaceholderText


def test_quick_work_shows_no_progress(window):
    line = ProgressLine(window)
    line.start("Opening")
    line.finish()
    assert not line.isVisible()
    assert not line._patience.isActive()


def test_long_work_shows_its_progress_and_can_be_cancelled(qtbot, window):
    line = ProgressLine(window)
    line.start("Opening")
    qtbot.waitUntil(line.isVisible)
    line.set_progress(0.43, "Opening, 43 %")
    assert line.findChildren(ElidedLabel)[0].text() == "Opening, 43 %"
    with qtbot.waitSignal(line.cancel_requested):
        line.findChildren(QToolButton)[0].click()
    line.finish()


def test_the_room_of_progress_is_reserved(window):
    line = ProgressLine(window)
    assert line.sizePolicy().retainSizeWhenHidden()


def test_the_title_row_is_28_pixels_and_its_menu_comes_with_the_first_action(window):
    frame = PanelFrame("Tokens", window)
    frame.show()
    more = frame.findChildren(QToolButton)[0]
    assert not more.isVisible()
    frame.add_menu_action(QAction("Copy", frame))
    assert more.isVisible()
    assert more.mapTo(frame, more.rect().bottomLeft()).y() <= TITLE_ROW + 4


def test_new_content_takes_the_place_of_the_old(qtbot, window):
    frame = PanelFrame("Tokens", window)
    first, second = QLabel("first"), QLabel("second")
    frame.set_content(first)
    with qtbot.waitSignal(first.destroyed):
        frame.set_content(second)
    assert second.parent() is frame


def test_controls_stand_in_reading_order(window):
    frame = PanelFrame("Tokens", window)
    left, right = QLabel("left"), QLabel("right")
    frame.add_control(left)
    frame.add_control(right)
    frame.resize(300, 60)
    frame.show()
    assert left.x() < right.x()
