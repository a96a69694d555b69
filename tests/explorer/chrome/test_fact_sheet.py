"""The sheet of facts as text: nothing of a token or a name is read as markup."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer.theme.manager import ThemeChoice, ThemeManager
from explorer.viewmodels.facts import FactRow, FactSection, FactSheet
from explorer.widgets.fact_sheet import FactSheetView


def _sheet(*rows: FactRow) -> FactSheet:
    return FactSheet(sections=(FactSection(title="Cell", rows=rows),))


def _view(qtbot: QtBot, qapp: QApplication, *rows: FactRow) -> FactSheetView:
    view = FactSheetView(ThemeManager(qapp, ThemeChoice.LIGHT))
    qtbot.addWidget(view)
    view.set_sheet(_sheet(*rows))
    return view


def test_a_token_that_looks_like_markup_is_shown_as_it_is(qtbot: QtBot, qapp: QApplication) -> None:
    view = _view(qtbot, qapp, FactRow(name="key 1", value="<b>&amp;", is_token=True))
    assert "<b>&amp;" in view.toPlainText()


def test_the_space_of_a_token_shows_as_a_dot(qtbot: QtBot, qapp: QApplication) -> None:
    view = _view(qtbot, qapp, FactRow(name="key 1", value=" cat", is_token=True))
    assert "·cat" in view.toPlainText()


def test_what_was_inferred_says_so_and_what_was_stated_does_not(qtbot: QtBot, qapp: QApplication) -> None:
    view = _view(qtbot, qapp, FactRow(name="heads", value="4", mark="inferred"), FactRow(name="layers", value="2"))
    assert "4 (inferred)" in view.toPlainText()
    assert "2 (" not in view.toPlainText()


def test_a_sheet_that_needs_a_scroll_bar_is_shown_once(qtbot: QtBot, qapp: QApplication) -> None:
    view = _view(qtbot, qapp)
    view.resize(220, 100)
    with qtbot.waitExposed(view):
        view.show()
    view.set_sheet(_sheet(*(FactRow(name=f"fact number {n}", value="4") for n in range(30))))
    view.resize(260, 100)
    assert view.toPlainText().count("fact number 7") == 1


def test_a_row_is_as_high_with_a_token_as_with_the_dash_that_stands_for_one(qtbot: QtBot, qapp: QApplication) -> None:
    heights = []
    for row in FactRow(name="key", value="\u2013"), FactRow(name="key", value="2 cat", is_token=True):
        view = _view(qtbot, qapp, row)
        with qtbot.waitExposed(view):
            view.show()
        heights.append(view.document().size().height())
    assert heights[0] == heights[1] > 0.0
