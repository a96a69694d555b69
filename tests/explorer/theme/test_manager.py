"""The theme reaches the application, and follows or ignores the system as asked."""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QWidget

from explorer.theme import manager
from explorer.theme.colors import DARK, LIGHT
from explorer.theme.manager import ThemeChoice


def test_pinning_dark_changes_palette_and_tells(qtbot, qapp, themes):
    with qtbot.waitSignal(themes.theme_changed) as told:
        themes.set_choice(ThemeChoice.DARK)
    assert told.args == [DARK]
    assert qapp.palette().color(QPalette.ColorRole.Window).name() == DARK.window
    assert DARK.border in qapp.styleSheet()


def test_pinning_what_is_on_already_stays_silent(qtbot, themes):
    with qtbot.assertNotEmitted(themes.theme_changed):
        themes.set_choice(ThemeChoice.LIGHT)
    assert themes.theme is LIGHT


def test_the_system_is_followed_until_a_theme_is_pinned(qapp, themes, monkeypatch):
    themes.set_choice(ThemeChoice.SYSTEM)
    for is_dark, expected in ((True, DARK), (False, LIGHT), (True, DARK)):
        monkeypatch.setattr(manager, "is_system_dark", lambda application, answer=is_dark: answer)
        qapp.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Unknown)
        assert themes.theme is expected
    themes.set_choice(ThemeChoice.LIGHT)
    qapp.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert themes.theme is LIGHT


def test_disabled_text_is_dimmed(qapp, themes):
    color = qapp.palette().color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.WindowText)
    assert color.name() == LIGHT.text_disabled


class StyleChanges(QObject):
    """Counts how often a widget is styled anew."""

    count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() is QEvent.Type.StyleChange
        return False


def test_a_widget_deep_inside_is_not_styled_anew_for_each_of_its_ancestors(qtbot, themes) -> None:
    outermost = innermost = QWidget()
    qtbot.addWidget(outermost)
    for _ in range(6):
        innermost = QWidget(innermost)
    with qtbot.waitExposed(outermost):
        outermost.show()
    changes = StyleChanges()
    innermost.installEventFilter(changes)
    themes.set_choice(ThemeChoice.DARK)
    assert 1 <= changes.count <= 2
