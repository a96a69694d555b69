"""The few fonts: the system's own in three sizes, and a fixed-width one for tokens."""

from PySide6.QtGui import QFont, QFontDatabase, QGuiApplication

_CAPTION_SCALE = 0.88
_TITLE_SCALE = 1.1


def body_font() -> QFont:
    """The system font with figures of one width."""
    font = QFont(QGuiApplication.font())
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def caption_font() -> QFont:
    return _scaled(body_font(), _CAPTION_SCALE)


def title_font() -> QFont:
    """One size up, heavier: panel titles."""
    font = _scaled(body_font(), _TITLE_SCALE)
    font.setWeight(QFont.Weight.DemiBold)
    return font


def heading_font() -> QFont:
    """Body size, heavier: what a plot or a section shows."""
    font = body_font()
    font.setWeight(QFont.Weight.DemiBold)
    return font


def token_font(scale: float = 1.0) -> QFont:
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(QGuiApplication.font().pointSizeF() * scale)
    return font


def _scaled(font: QFont, scale: float) -> QFont:
    font.setPointSizeF(font.pointSizeF() * scale)
    return font
