"""The strip finds tokens under the mouse, marks query and key, and does not care how many there are."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QWidget

from explorer.theme.colors import LIGHT
from explorer.widgets.token_strip import TokenStrip

TOKENS = ("The", " cat", " sat", " on", " the", " mat", "\n", ".")


@pytest.fixture
def strip(qtbot, themes):
    strip = TokenStrip(themes)
    qtbot.addWidget(strip)
    strip.resize(480, 120)
    with qtbot.waitExposed(strip):
        strip.show()
    strip.set_tokens(TOKENS)
    return strip


def middle(strip: TokenStrip, index: int) -> QPoint:
    rect = strip._chip(index, strip._layout.line_of(index))
    shift = QPoint(strip.horizontalScrollBar().value(), strip.verticalScrollBar().value())
    return rect.center().toPoint() - shift


def test_mouse_and_click_name_the_token(qtbot, strip):
    with qtbot.waitSignal(strip.token_hovered) as hovered:
        qtbot.mouseMove(strip.viewport(), middle(strip, 2))
    with qtbot.waitSignal(strip.token_clicked) as clicked:
        qtbot.mouseClick(strip.viewport(), Qt.MouseButton.LeftButton, pos=middle(strip, 2))
    assert hovered.args == clicked.args == [2]


def test_leaving_the_chips_says_so(qtbot, strip):
    with qtbot.waitSignal(strip.token_hovered):
        qtbot.mouseMove(strip.viewport(), middle(strip, 4))
    with qtbot.waitSignal(strip.hover_left):
        qtbot.mouseMove(strip.viewport(), QPoint(460, 110))


def test_query_and_key_have_their_colours_and_letters(strip):
    strip.set_marked(query=5, key=1)
    image = strip.viewport().grab().toImage()
    scale = image.devicePixelRatio()

    def ground(index: int) -> str:
        rect = strip._chip(index, strip._layout.line_of(index))
        return image.pixelColor((rect.topLeft().toPoint() + QPoint(3, 8)) * scale).name()

    assert (ground(5), ground(1), ground(2)) == (LIGHT.query_tint, LIGHT.key_tint, LIGHT.hover)
    assert strip.accessibleDescription() == "K 1 \u00b7cat, Q 5 \u00b7mat"


def test_one_token_can_be_both_query_and_key(strip):
    strip.set_marked(query=3, key=3)
    assert strip.accessibleDescription() == "QK 3 \u00b7on"


def test_keys_walk_along_the_tokens_and_enter_picks(qtbot, strip):
    with qtbot.waitSignal(strip.token_hovered) as first:
        qtbot.keyClick(strip, Qt.Key.Key_Right)
    with qtbot.waitSignal(strip.token_hovered) as second:
        qtbot.keyClick(strip, Qt.Key.Key_Right)
    with qtbot.waitSignal(strip.token_clicked) as picked:
        qtbot.keyClick(strip, Qt.Key.Key_Return)
    assert (first.args, second.args, picked.args) == ([0], [1], [1])


def test_ten_thousand_tokens_are_one_widget_and_the_marked_one_is_in_view(qtbot, strip):
    strip.set_tokens([f" token{index}" for index in range(10_000)])
    children = len(strip.findChildren(QWidget))
    strip.set_marked(query=9_000)
    assert len(strip.findChildren(QWidget)) == children < 10
    assert strip.viewport().rect().contains(middle(strip, 9_000))


def test_a_strip_that_does_not_wrap_scrolls_sideways(qtbot, themes):
    strip = TokenStrip(themes, wraps=False)
    qtbot.addWidget(strip)
    strip.resize(200, 60)
    with qtbot.waitExposed(strip):
        strip.show()
    strip.set_tokens(["word"] * 50)
    assert strip.horizontalScrollBar().maximum() > 0
    assert strip.verticalScrollBar().maximum() == 0
    strip.set_marked(query=49)
    assert strip.viewport().rect().contains(middle(strip, 49))


def test_new_tokens_forget_old_marks(strip):
    strip.set_marked(query=7)
    strip.set_tokens(["a"])
    strip.grab()
    assert strip.accessibleDescription() == "tokens: 1"
