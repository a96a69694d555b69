"""Which theme is on, and its way into Qt's palette."""

from enum import StrEnum

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from explorer.theme.colors import DARK, LIGHT, Theme
from explorer.theme.stylesheet import application_stylesheet


class ThemeChoice(StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class ThemeManager(QObject):
    """Follows the system's colour scheme, or a pinned one, and dresses the application in it.

    Whoever paints with named colours reads `theme` and repaints on `theme_changed`.
    """

    theme_changed = Signal(object)
    """The new Theme."""

    def __init__(self, application: QApplication, choice: ThemeChoice = ThemeChoice.SYSTEM) -> None:
        super().__init__(application)
        self._application = application
        self._choice = choice
        application.setStyle("Fusion")
        self._theme = self._wanted()
        self._dress()
        application.styleHints().colorSchemeChanged.connect(self._on_system_scheme_changed)

    @property
    def theme(self) -> Theme:
        return self._theme

    @property
    def choice(self) -> ThemeChoice:
        return self._choice

    def set_choice(self, choice: ThemeChoice) -> None:
        self._choice = choice
        self._apply()

    @Slot()
    def _on_system_scheme_changed(self) -> None:
        self._apply()

    def _wanted(self) -> Theme:
        if self._choice is ThemeChoice.SYSTEM:
            return DARK if is_system_dark(self._application) else LIGHT
        return DARK if self._choice is ThemeChoice.DARK else LIGHT

    def _apply(self) -> None:
        wanted = self._wanted()
        if wanted is self._theme:
            return
        self._theme = wanted
        self._dress()
        self.theme_changed.emit(wanted)

    def _dress(self) -> None:
        """The sheet is taken off first: one in the place of another styles each widget anew for each of its ancestors,
        0.2 s for the whole window instead of 0.05."""
        self._application.setStyleSheet("")
        self._application.setPalette(palette_of(self._theme))
        self._application.setStyleSheet(application_stylesheet(self._theme))


def is_system_dark(application: QApplication) -> bool:
    """What the desktop is set to; False where it does not say."""
    return application.styleHints().colorScheme() is Qt.ColorScheme.Dark


def palette_of(theme: Theme) -> QPalette:
    """Qt's palette roles filled from the named colours."""
    roles = QPalette.ColorRole
    colors = {
        roles.Window: theme.window,
        roles.WindowText: theme.text,
        roles.Base: theme.surface,
        roles.AlternateBase: theme.window,
        roles.Text: theme.text,
        roles.PlaceholderText: theme.text_muted,
        roles.Button: theme.raised,
        roles.ButtonText: theme.text,
        roles.BrightText: theme.error,
        roles.ToolTipBase: theme.raised,
        roles.ToolTipText: theme.text,
        roles.Highlight: theme.selection,
        roles.HighlightedText: theme.text,
        roles.Accent: theme.accent,
        roles.Link: theme.query,
        roles.LinkVisited: theme.output,
        roles.Light: theme.raised,
        roles.Midlight: theme.hover,
        roles.Mid: theme.border,
        roles.Dark: theme.border,
        roles.Shadow: theme.border,
    }
    palette = QPalette()
    for role, color in colors.items():
        palette.setColor(role, QColor(color))
    for role in (
        roles.WindowText,
        roles.Text,
        roles.PlaceholderText,
        roles.ButtonText,
        roles.HighlightedText,
        roles.ToolTipText,
    ):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(theme.text_disabled))
    return palette
