"""One of four states is on screen, and quick work shows none of them."""

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from explorer.widgets.state_page import StatePage


@pytest.fixture
def page(qtbot, themes):
    page = StatePage(themes, QLabel("content"))
    qtbot.addWidget(page)
    page.resize(480, 400)
    with qtbot.waitExposed(page):
        page.show()
    return page


def shown(page: StatePage) -> list[str]:
    widgets = [*page.findChildren(QLabel), *page.findChildren(QPushButton)]
    return [widget.text() for widget in widgets if widget.isVisible() and widget.text()]


def test_empty_says_what_to_do_and_offers_it(qtbot, page):
    page.show_empty("Open a model to see its attention.", "Open a model")
    assert shown(page) == ["Open a model to see its attention.", "Open a model"]
    with qtbot.waitSignal(page.action_triggered):
        next(button for button in page.findChildren(QPushButton) if button.isVisible()).click()


def test_error_says_what_why_and_the_next_step(page):
    page.show_error("It cannot be opened.", "The header is cut off.", "Download it again.", "offset 900")
    assert shown(page) == ["It cannot be opened.", "The header is cut off.", "Download it again."]


def test_quick_work_does_not_show_the_working_page(page):
    page.show_working("Tracing")
    page.show_content()
    assert shown(page) == ["content"]
    assert not page._patience.isActive()


def test_long_work_is_shown_and_can_be_cancelled(qtbot, page):
    page.show_working("Tracing 4096 tokens")
    qtbot.waitUntil(lambda: "Tracing 4096 tokens" in shown(page))
    page.show_progress(0.5, "Tracing 4096 tokens, 50 %")
    assert "Tracing 4096 tokens, 50 %" in shown(page)
    with qtbot.waitSignal(page.cancel_requested):
        next(button for button in page.findChildren(QPushButton) if button.isVisible()).click()
    page.show_content()


def test_content_follows_an_error(page):
    page.show_error("It cannot be opened.")
    page.show_content()
    assert shown(page) == ["content"]


def test_work_that_begins_under_the_keyboard_is_not_cancelled_by_the_next_key(qtbot, page):
    page.activateWindow()
    page.show_empty("Open a model.", "Open")
    next(button for button in page.findChildren(QPushButton) if button.isVisible()).setFocus()
    page.show_working("Opening")
    qtbot.waitUntil(lambda: "Opening" in shown(page))
    assert not isinstance(page.window().focusWidget(), QPushButton)
    page.show_content()
