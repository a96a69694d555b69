from __future__ import annotations

import pytest
from PySide6.QtGui import QFontMetricsF
from pytestqt.qtbot import QtBot

from explorer.plots.axis import TokenAxis
from explorer.theme.colors import LIGHT


@pytest.mark.parametrize("size", [1300, 14208, 131072])
@pytest.mark.parametrize("width", [200, 523, 1700])
def test_indices_along_the_top_never_touch(qtbot: QtBot, size: int, width: int) -> None:
    axis = TokenAxis(LIGHT, "top")
    qtbot.addWidget(axis)
    axis.resize(width, 60)
    axis.set_content((), size, "key (column)", "key")
    axis.set_span((0.0, float(size)))
    indices = axis._regular_indices()
    pixels_apart = indices.step * width / size
    # The last label may be moved inwards by half its width, to stay inside the axis.
    assert pixels_apart > 1.5 * QFontMetricsF(axis._font).horizontalAdvance(str(indices[-1]))
