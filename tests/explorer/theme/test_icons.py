"""Every drawing renders, in the colour of the theme, sharp at any scale."""

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QImage

from explorer.theme.colors import DARK, LIGHT
from explorer.theme.icons import ICON_FOLDER, icon
from explorer.theme.manager import ThemeChoice

NAMES = sorted(path.stem for path in ICON_FOLDER.glob("*.svg"))


def strongest(image: QImage) -> QColor:
    """The most opaque pixel."""
    pixels = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
    return max(pixels, key=QColor.alpha)


@pytest.mark.parametrize("name", NAMES)
def test_icon_is_drawn_in_the_text_colour(themes, name):
    image = icon(name).pixmap(QSize(40, 40), 1.0).toImage()
    ink = strongest(image)
    assert ink.alpha() > 200
    assert ink.name() == LIGHT.text


def test_icon_follows_a_change_of_theme(themes):
    play = icon("play")
    themes.set_choice(ThemeChoice.DARK)
    assert strongest(play.pixmap(QSize(40, 40), 1.0).toImage()).name() == DARK.text


def test_icon_keeps_a_colour_of_its_own(themes):
    assert strongest(icon("error", LIGHT.error).pixmap(QSize(40, 40), 1.0).toImage()).name() == LIGHT.error


def test_icon_is_rendered_at_the_scale_of_the_screen(themes):
    pixmap = icon("open").pixmap(QSize(16, 16), 2.0)
    assert (pixmap.width(), pixmap.devicePixelRatio()) == (32, 2.0)


def test_an_icon_nobody_drew_is_refused():
    with pytest.raises(FileNotFoundError):
        icon("unicorn")
