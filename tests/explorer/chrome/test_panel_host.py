from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from explorer.chrome.panel_host import AskingHost
from explorer.panels.panel import Panel, PanelSpec
from explorer.state.app_state import AppState, Display
from explorer.theme.manager import ThemeManager

LINEAR = AppState(position_length=10)
LOG = replace(LINEAR, display=Display(scale="log"))
OTHER = replace(LOG, position_length=20)


@pytest.fixture
def host(qtbot: QtBot, themes: ThemeManager) -> AskingHost:
    """Its picture is the answer, and the state that it was drawn with."""
    spec = PanelSpec(
        key="panel", title="", icon="", area="centre", layouts=(),
        factory=lambda themes: Panel(), view=lambda answer, state: (answer, state),
    )  # fmt: skip
    host = AskingHost(spec, themes)
    qtbot.addWidget(host)
    with qtbot.waitExposed(host):
        host.show()
    host.show_state(LINEAR)
    host.show_result("answer")
    return host


def test_another_look_draws_the_same_answer_anew(host: AskingHost) -> None:
    host.show_state(LOG)
    assert host.picture == ("answer", LOG)


@pytest.mark.parametrize("lay_aside", [lambda host: host.show_waiting(is_own=True), lambda host: host.hide()])
def test_an_answer_is_never_drawn_with_a_state_it_does_not_belong_to(
    host: AskingHost, lay_aside: Callable[[AskingHost], None]
) -> None:
    lay_aside(host)
    host.show_state(OTHER)
    assert host.picture == ("answer", LINEAR)
    host.show_result("other")
    assert host.picture == ("other", OTHER)


@pytest.mark.parametrize("lay_aside", [lambda host: host.show_waiting(is_own=True), lambda host: host.hide()])
def test_an_answer_that_is_right_again_has_the_look_chosen_meanwhile(
    host: AskingHost, lay_aside: Callable[[AskingHost], None]
) -> None:
    lay_aside(host)
    host.show_state(LOG)
    host.show_result("answer")
    assert host.picture == ("answer", LOG)
