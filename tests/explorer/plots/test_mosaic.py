"""Every head has its place, its picture and its answer to the mouse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QColor

from explorer.plots.mosaic import HeadMosaic
from explorer.plots.mosaic_layout import MosaicLayout
from explorer.theme.manager import ThemeChoice
from explorer.viewmodels.colormaps import lookup_table
from explorer.viewmodels.records import MosaicPicture
from tests.explorer.plots.pictures import pixel

N_LAYERS, N_HEADS = 3, 4


def picture(**changes) -> MosaicPicture:
    """Every head is one flat colour: head `h` of layer `l` has the value (4 l + h) / 11."""
    values = np.arange(12, dtype=np.float32).reshape(N_LAYERS, N_HEADS, 1, 1) / 11
    settings = {
        "thumbnails": np.broadcast_to(values, (N_LAYERS, N_HEADS, 8, 8)),
        "levels": (0.0, 1.0),
        "title": "All heads, decoder.self",
    }
    return MosaicPicture(**(settings | changes))


@pytest.fixture
def mosaic(qtbot, themes):
    mosaic = HeadMosaic(themes)
    qtbot.addWidget(mosaic)
    mosaic.resize(320, 320)
    with qtbot.waitExposed(mosaic):
        mosaic.show()
    mosaic.set_picture(picture())
    return mosaic


def middle(mosaic: HeadMosaic, layer: int, head: int) -> QPoint:
    assert mosaic._layout is not None
    return mosaic._layout.tile_rect(layer, head).center()


@given(
    n_layers=st.integers(1, 96),
    n_heads=st.integers(1, 128),
    width=st.integers(150, 2000),
    height=st.integers(150, 2000),
)
def test_all_tiles_lie_within_the_area_when_each_has_a_pixel(n_layers, n_heads, width, height):
    area = QRect(10, 20, width, height)
    layout = MosaicLayout.fitting((n_layers, n_heads), area, has_bars=False)
    last = layout.tile_rect(n_layers - 1, n_heads - 1)
    if width >= 2 * n_heads and height >= 2 * n_layers:
        assert area.contains(layout.tile_rect(0, 0)) and area.contains(last)


@given(layer=st.integers(0, 11), head=st.integers(0, 15), has_bars=st.booleans())
def test_the_head_under_the_middle_of_its_tile_is_that_head(layer, head, has_bars):
    layout = MosaicLayout.fitting((12, 16), QRect(30, 40, 500, 400), has_bars=has_bars)
    assert layout.head_at(QPointF(layout.tile_rect(layer, head).center())) == (layer, head)


def test_outside_of_all_tiles_there_is_no_head():
    layout = MosaicLayout.fitting((2, 2), QRect(30, 40, 100, 100), has_bars=False)
    assert layout.head_at(QPointF(5, 5)) is None
    assert layout.head_at(QPointF(500, 60)) is None


def test_layers_run_downward_and_heads_to_the_right(mosaic):
    table = lookup_table("viridis")
    for layer in range(N_LAYERS):
        for head in range(N_HEADS):
            expected = table[round(255 * (4 * layer + head) / 11)]
            assert pixel(mosaic, middle(mosaic, layer, head)) == QColor(*expected.tolist())


def test_mouse_and_clicks_name_the_head(qtbot, mosaic):
    place = middle(mosaic, 2, 1)
    with qtbot.waitSignal(mosaic.head_hovered) as hovered:
        qtbot.mouseMove(mosaic, place)
    with qtbot.waitSignal(mosaic.head_clicked) as clicked:
        qtbot.mouseClick(mosaic, Qt.MouseButton.LeftButton, pos=place)
    with qtbot.waitSignal(mosaic.head_double_clicked) as double_clicked:
        qtbot.mouseDClick(mosaic, Qt.MouseButton.LeftButton, pos=place)
    assert hovered.args == clicked.args == double_clicked.args == [2, 1]


def test_arrow_keys_pick_neighbours_and_stop_at_the_edge(qtbot, mosaic):
    mosaic.set_selected_head((0, 2))
    with qtbot.waitSignal(mosaic.head_clicked) as moved:
        qtbot.keyClick(mosaic, Qt.Key.Key_Right)
    assert moved.args == [0, 3]
    with qtbot.assertNotEmitted(mosaic.head_clicked):
        qtbot.keyClick(mosaic, Qt.Key.Key_Right)
        qtbot.keyClick(mosaic, Qt.Key.Key_Up)


def test_the_selected_head_is_told_with_its_value(mosaic):
    values = np.full((N_LAYERS, N_HEADS), np.nan, dtype=np.float32)
    values[1, 2] = 1.25
    mosaic.set_picture(picture(head_values=values, value_name="entropy (nat)"))
    mosaic.set_selected_head((1, 2))
    assert mosaic.accessibleDescription() == "layer 1 head 2, entropy (nat) 1.25"
    mosaic.set_selected_head((0, 0))
    assert mosaic.accessibleDescription() == "layer 0 head 0"


def test_a_selection_that_a_smaller_model_lacks_is_dropped(mosaic):
    mosaic.set_selected_head((2, 3))
    mosaic.set_picture(picture(thumbnails=np.zeros((1, 2, 8, 8), np.float32)))
    assert mosaic._selected is None


def test_the_best_size_of_a_thumbnail_is_announced_on_a_resize(qtbot, mosaic):
    with qtbot.waitSignal(mosaic.thumbnail_size_changed) as announced:
        mosaic.resize(600, 600)
    assert announced.args == [round(mosaic._layout.tile * mosaic.devicePixelRatioF())]


def test_masked_cells_are_hatched_on_the_paper_of_the_theme(mosaic, themes):
    thumbnails = np.full((1, 1, 8, 8), np.nan, dtype=np.float32)
    mosaic.set_picture(picture(thumbnails=thumbnails))
    themes.set_choice(ThemeChoice.DARK)
    tile = mosaic._layout.tile_rect(0, 0)
    image = mosaic.grab().toImage()
    seen = {image.pixelColor(tile.left() + dx, tile.center().y()).name() for dx in range(2, 40)}
    assert themes.theme.surface in seen and len(seen) > 1


def test_a_tile_smaller_than_its_picture_shows_the_largest_weight_and_no_mean(mosaic):
    """One weight of 1 among zeros must not fade to grey where the tiles are small."""
    thumbnails = np.zeros((1, 1, 64, 64), dtype=np.float32)
    thumbnails[0, 0, 20, 30] = 1.0
    mosaic.resize(120, 120)
    mosaic.set_picture(picture(thumbnails=np.broadcast_to(thumbnails, (2, 8, 64, 64))))
    tile, image = mosaic._layout.tile_rect(1, 7), mosaic.grab().toImage()
    places = [(x, y) for x in range(tile.left(), tile.right()) for y in range(tile.top(), tile.bottom())]
    colors = [QColor(*lookup_table("viridis")[end].tolist()).name() for end in (0, 255)]
    assert {image.pixelColor(*place).name() for place in places} == set(colors)


def test_the_picture_of_a_cross_attention_is_drawn_whole(qtbot, themes, mosaic):
    """Three queries over nine keys: each head has its value in the last row and the last column alone."""
    thumbnails = np.zeros((N_LAYERS, N_HEADS, 3, 9), dtype=np.float32)
    thumbnails[:, :, 2, 8] = np.arange(12).reshape(N_LAYERS, N_HEADS) / 11
    mosaic.set_picture(picture(thumbnails=thumbnails))
    table = lookup_table("viridis")
    for layer in range(N_LAYERS):
        for head in range(N_HEADS):
            corner = mosaic._layout.tile_rect(layer, head).bottomRight() - QPoint(2, 4)
            expected = table[round(255 * (4 * layer + head) / 11)]
            assert pixel(mosaic, corner) == QColor(*expected.tolist())
