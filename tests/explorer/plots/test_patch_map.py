"""The colours lie on the patches they belong to, and the mouse finds them."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from explorer.plots.patch_map import PatchMap
from explorer.theme.colors import LIGHT
from tests.explorer.plots.pictures import COLUMNS, FIRST, ROWS, patch_picture, pixel

SIDE, MARGIN = 50, 3
"""Of a patch, and around all of them, in pixels."""


@pytest.fixture
def patches(qtbot, themes):
    patches = PatchMap(themes)
    qtbot.addWidget(patches)
    patches.resize(COLUMNS * SIDE + 2 * MARGIN, 300)
    with qtbot.waitExposed(patches):
        patches.show()
    patches.set_picture(patch_picture())
    return patches


def middle(row: int, column: int) -> QPoint:
    return QPoint(MARGIN + column * SIDE + SIDE // 2, MARGIN + row * SIDE + SIDE // 2)


def test_the_patch_with_the_weight_is_dark_and_the_others_keep_the_picture(patches):
    lightness = [[pixel(patches, middle(row, column)).lightness() for column in range(3)] for row in range(2)]
    assert lightness[0].pop(2) < 60  # ink, 0.85 opaque, on white
    assert min(min(row) for row in lightness) == 255  # paper on white


def test_without_the_colours_the_picture_has_its_own(patches):
    image = np.zeros((ROWS * 4, COLUMNS * 4, 3), dtype=np.uint8)
    image[..., 0] = 200
    patches.set_picture(patch_picture(image=image))
    assert pixel(patches, middle(1, 0)).hslSaturation() < 60  # grey under the faintest colour
    patches.set_numbers_shown(False)
    assert pixel(patches, middle(1, 0)).name() == "#c80000"


def test_a_patch_under_the_mouse_is_its_token_and_a_click_chooses_it(qtbot, patches):
    with qtbot.waitSignal(patches.patch_hovered) as hovered:
        qtbot.mouseMove(patches, middle(1, 2))
    assert hovered.args == [FIRST + 5]
    with qtbot.waitSignal(patches.patch_clicked) as clicked:
        qtbot.mouseClick(patches, Qt.MouseButton.LeftButton, pos=middle(0, 1))
    assert clicked.args == [FIRST + 1]
    with qtbot.waitSignal(patches.hover_left):
        qtbot.mouseMove(patches, QPoint(10, 290))


def test_arrows_walk_from_the_query_and_return_chooses(qtbot, patches):
    patches.set_picture(patch_picture(place=(1, 1)))
    with qtbot.waitSignals([patches.patch_hovered] * 3) as _, qtbot.waitSignal(patches.patch_clicked) as clicked:
        for key in (Qt.Key.Key_Up, Qt.Key.Key_Left, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Return):
            qtbot.keyClick(patches, key)
    assert clicked.args == [FIRST + 3]


def test_query_and_key_are_framed_in_their_colours(patches):
    patches.set_picture(patch_picture(place=(0, 0)))
    patches.set_key(FIRST + 4)
    assert pixel(patches, QPoint(MARGIN, MARGIN + SIDE // 2)).name() == LIGHT.query
    assert pixel(patches, QPoint(MARGIN + SIDE, MARGIN + SIDE + SIDE // 2)).name() == LIGHT.key
    patches.set_key(0)  # the class token has no patch
    assert pixel(patches, QPoint(MARGIN + SIDE, MARGIN + SIDE + SIDE // 2)).name() != LIGHT.key
