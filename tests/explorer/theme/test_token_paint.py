"""A token takes the room that was measured for it."""

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter
from pytestqt.qtbot import QtBot

from explorer.theme.fonts import token_font
from explorer.theme.token_paint import draw_token, token_width


@pytest.mark.parametrize("token", [" cat", "a b\n", "\u05e9 1/2", "\u0645 1/2", "\u65e5\u672c"])
def test_nothing_is_painted_beyond_the_measured_width(qtbot: QtBot, token: str) -> None:
    font = token_font(2.0)
    image = QImage(400, 60, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(0)
    painter = QPainter(image)
    painter.setFont(font)
    draw_token(painter, QPointF(100, 40), token, QColor("black"), QColor("black"))
    painter.end()
    columns = [x for x in range(400) if any(image.pixel(x, y) for y in range(60))]
    assert columns
    assert columns[0] >= 100 - 2 and columns[-1] <= 100 + token_width(QFontMetricsF(font), token) + 2
