"""Controls in as many lines as they need."""

from __future__ import annotations

from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from explorer.widgets.flow_layout import FlowLayout


def row_of(qtbot: QtBot, n: int) -> tuple[QWidget, list[QPushButton]]:
    """Buttons of 100 x 20 pixels, 10 apart."""
    row = QWidget()
    qtbot.addWidget(row)
    layout = FlowLayout(row)
    layout.setContentsMargins(5, 5, 5, 5)
    layout.setSpacing(10)
    buttons = [QPushButton("b", row) for _ in range(n)]
    for button in buttons:
        button.setFixedSize(100, 20)
        layout.addWidget(button)
    return row, buttons


def test_what_does_not_fit_a_line_goes_into_the_next_and_the_height_follows(qtbot: QtBot) -> None:
    row, buttons = row_of(qtbot, 3)
    row.resize(225, 100)
    with qtbot.waitExposed(row):
        row.show()
    assert [(button.x(), button.y()) for button in buttons] == [(5, 5), (115, 5), (5, 35)]
    assert [row.heightForWidth(width) for width in (330, 225, 110)] == [30, 60, 90]
    assert row.minimumSizeHint().width() == 110


def test_what_is_hidden_takes_no_room(qtbot: QtBot) -> None:
    row, buttons = row_of(qtbot, 3)
    buttons[0].hide()
    row.resize(225, 100)
    with qtbot.waitExposed(row):
        row.show()
    assert [(button.x(), button.y()) for button in buttons[1:]] == [(5, 5), (115, 5)]
    assert row.heightForWidth(225) == 30


def test_a_control_that_grows_changes_the_height(qtbot: QtBot) -> None:
    row, buttons = row_of(qtbot, 2)
    assert row.heightForWidth(225) == 30
    buttons[0].setFixedSize(200, 20)
    assert row.heightForWidth(225) == 60
