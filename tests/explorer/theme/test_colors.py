"""Contrast by formula, and hues that stay."""

import pytest
from PySide6.QtWidgets import QLineEdit

from explorer.theme.colors import DARK, LIGHT, ROLES, Theme
from explorer.theme.manager import ThemeChoice


def luminance(color: str) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio, WCAG 2.2: from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_black_on_white_is_21():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
@pytest.mark.parametrize("ground", ["window", "surface", "raised", "hover", "selection"])
@pytest.mark.parametrize("ink", ["text", "text_muted"])
def test_text_is_readable_on_every_ground(theme: Theme, ground: str, ink: str):
    assert contrast(theme[ink], theme[ground]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
@pytest.mark.parametrize("ground", ["window", "surface"])
@pytest.mark.parametrize("ink", ["query", "key", "value", "output", "warning", "error", "ok", "running"])
def test_text_in_a_meaning_colour_is_readable(theme: Theme, ground: str, ink: str):
    assert contrast(theme[ink], theme[ground]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
@pytest.mark.parametrize(
    ("ink", "ground"),
    [
        ("query", "query_tint"),
        ("key", "key_tint"),
        ("text", "warning_tint"),
        ("text", "error_tint"),
        ("accent_text", "accent"),
    ],
)
def test_marked_text_is_readable_on_its_tint(theme: Theme, ink: str, ground: str):
    assert contrast(theme[ink], theme[ground]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_curves_and_heads_stand_out_from_the_paper(theme: Theme):
    """3:1 is what WCAG asks of graphical objects."""
    lines = [theme[role] for role in ROLES if role.startswith("series_")]
    heads = [theme.head_color(layer, head) for layer in range(12) for head in range(16)]
    assert min(contrast(color, theme.surface) for color in lines + heads) >= 3.0


def test_heads_of_a_layer_have_colours_of_their_own():
    assert len({LIGHT.head_color(3, head) for head in range(16)}) == 16


def test_an_unknown_role_is_refused():
    with pytest.raises(KeyError):
        LIGHT["name"]


@pytest.mark.parametrize("choice", list(ThemeChoice)[1:])
@pytest.mark.parametrize("is_enabled", [True, False])
def test_what_an_empty_field_asks_for_can_be_read(qtbot, themes, choice: ThemeChoice, is_enabled: bool):
    themes.set_choice(choice)
    field = QLineEdit()
    qtbot.addWidget(field)
    field.setPlaceholderText("Type a text")
    field.setEnabled(is_enabled)
    field.resize(200, field.sizeHint().height())
    image = field.grab(field.rect().adjusted(3, 3, -3, -3)).toImage()
    colors = {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}
    paper = image.pixelColor(image.width() - 2, image.height() // 2).name()
    assert max(contrast(color, paper) for color in colors) >= 4.5
