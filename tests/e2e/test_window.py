"""The window itself: commands, palette, layouts, themes, notices, start and end."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QMenu,
    QPushButton,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from core_model.cancel import CancelToken, Progress
from explorer.actions.commands import COMMANDS, MENUS, command
from explorer.app import build
from explorer.chrome.palette import CommandPalette
from explorer.faults import FaultHooks
from explorer.main_window import MainWindow
from explorer.samples import Sample
from explorer.settings.schema import Settings
from explorer.settings.store import SettingsStore
from explorer.state.app_state import LayoutName, ModelInput, Notice
from explorer.state.moves import add_notice, pick_head, pick_site, set_display, set_inputs, set_layout, set_theme
from explorer.state.queries import Query, R, TraceQuery
from explorer.workers.answers import ANSWERS
from explorer.workers.engine import Engine
from tests.e2e.conftest import Launch, wait_until_idle

TEXT = "a cat sat on a mat."


class SlowEngine(Engine):
    """Runs no model: a trace lasts until it is cancelled."""

    def __init__(self) -> None:
        super().__init__(ANSWERS)
        self.is_tracing = threading.Event()

    def answer(self, query: Query[R], cancel: CancelToken, progress: Progress) -> R:
        while isinstance(query, TraceQuery):
            self.is_tracing.set()
            progress(0.5)
            cancel.check()
        return super().answer(query, cancel, progress)


def titles(window: MainWindow) -> list[str]:
    return [action.text().replace("&", "") for action in window.menuBar().actions()]


def open_palette(window: MainWindow) -> tuple[CommandPalette, QLineEdit]:
    window.show_palette()
    palette = window.findChild(CommandPalette)
    assert palette is not None
    search = palette.findChild(QLineEdit)
    assert search is not None
    return palette, search


def test_every_shortcut_belongs_to_one_command() -> None:
    keys = [key for row in COMMANDS if row.shortcut for key in row.shortcut.split("|")]
    assert sorted(keys) == sorted(set(keys))


def test_every_command_says_what_it_does_in_one_sentence() -> None:
    for row in COMMANDS:
        assert row.tooltip.endswith("."), row.key
        assert row.menu in MENUS


def test_menus_stand_in_their_order_and_none_is_empty(launch: Launch) -> None:
    window = launch().window
    assert [title for title in MENUS if title in titles(window)] == titles(window)
    for action in window.menuBar().actions():
        menu = action.menu()
        assert isinstance(menu, QMenu)
        assert menu.actions()


def test_the_palette_finds_a_command_by_its_letters_and_runs_it(launch: Launch, qtbot: QtBot) -> None:
    explorer = launch()
    palette, search = open_palette(explorer.window)
    found = palette.findChild(QListWidget)
    assert found is not None
    qtbot.keyClicks(search, "dark")
    assert found.item(0).text() == "Dark"
    qtbot.keyClick(search, Qt.Key.Key_Return)
    assert explorer.store.state.theme == "dark"


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Escape])
def test_the_palette_gives_the_keys_back(launch: Launch, qtbot: QtBot, model_folder: Path, key: Qt.Key) -> None:
    explorer = launch(model_folder / "decoder", "a cat")
    explorer.window.activateWindow()
    explorer.window.focus_text()
    before = explorer.window.focusWidget()
    _, search = open_palette(explorer.window)
    assert explorer.window.focusWidget() is search
    qtbot.keyClicks(search, "dark")
    qtbot.keyClick(search, key)
    assert isinstance(before, QLineEdit) and explorer.window.focusWidget() is before


def test_the_palette_does_not_run_what_cannot_be_done_now(launch: Launch, qtbot: QtBot) -> None:
    explorer = launch()
    palette, search = open_palette(explorer.window)
    qtbot.keyClicks(search, "next layer")
    qtbot.keyClick(search, Qt.Key.Key_Return)
    assert palette.isVisible()
    palette.close()


def test_the_theme_changes_at_once_and_is_remembered(launch: Launch, tmp_path: Path, qapp: QApplication) -> None:
    keeper = SettingsStore(tmp_path / "settings.json")
    explorer = launch(keeper=keeper)
    light = qapp.palette().color(QPalette.ColorRole.Window).lightness()
    explorer.store.settle(set_theme("dark"))
    assert qapp.palette().color(QPalette.ColorRole.Window).lightness() < light
    explorer.close()
    assert keeper.load()[0].theme == "dark"


def test_a_dock_that_was_closed_stays_closed_until_the_layout_is_reset(launch: Launch, tmp_path: Path) -> None:
    keeper = SettingsStore(tmp_path / "settings.json")
    explorer = launch(keeper=keeper)
    explorer.window.toggle_panel("heads")
    explorer.close()
    again = launch(settings=keeper.load()[0])
    assert not again.window.is_panel_open("heads")
    again.window.reset_layout()
    assert again.window.is_panel_open("heads")


def test_each_layout_keeps_its_own_docks(launch: Launch) -> None:
    explorer = launch()
    explorer.window.toggle_panel("tokens")
    explorer.store.settle(set_layout("train"))
    assert not explorer.window.is_panel_open("heads")
    explorer.store.settle(set_layout("explore"))
    assert explorer.window.is_panel_open("heads")
    assert not explorer.window.is_panel_open("tokens")


def test_the_bar_leads_to_each_layout_and_back(launch: Launch) -> None:
    explorer = launch()
    buttons = {button.text(): button for button in explorer.window.findChildren(QToolButton)}
    for name in ("Train", "Explore"):
        buttons[name].click()
        assert explorer.store.state.layout == name.lower()
        assert buttons[name].isVisible() and buttons[name].isChecked()
    assert not buttons["Train"].isChecked()


def test_a_concept_is_shown_in_its_layout(launch: Launch, model_folder: Path) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    command("learn_positions").run(explorer.window.desk)
    assert explorer.store.state.layout == "learn"
    assert explorer.window.host("positions").isVisible()


def test_a_closed_panel_asks_nothing_and_is_answered_when_it_returns(
    launch: Launch, model_folder: Path, qtbot: QtBot
) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    explorer.window.toggle_panel("heads")
    explorer.store.apply(pick_head(1, 1))
    wait_until_idle(qtbot, explorer)
    explorer.window.toggle_panel("heads")
    wait_until_idle(qtbot, explorer)
    assert explorer.window.host("heads").picture is not None


def test_a_sample_is_on_screen_with_its_text_its_head_and_a_line(
    model_folder: Path, qapp: QApplication, qtbot: QtBot
) -> None:
    sample = Sample(
        folder=str(model_folder / "decoder"),
        title="A small model",
        line="This head looks one token back.",
        text="abc",
        site="decoder.self",
        layer=1,
        head=2,
    )
    explorer = build(qapp, Settings(theme="light"), samples=(sample,))
    explorer.window.show()
    explorer.start()
    wait_until_idle(qtbot, explorer)
    assert explorer.window.host("matrix").picture.title.endswith("layer 1 head 2")
    assert explorer.window.welcome_line == "This head looks one token back."
    explorer.store.apply(pick_head(0, 0))
    assert explorer.window.welcome_line == "Known in this sample: A small model (layer 1 head 2)."
    explorer.store.apply(pick_head(1, 2))
    explorer.store.apply(set_inputs(ModelInput(text="cab")))
    assert "one token back" not in explorer.window.welcome_line
    assert not explorer.store.state.recent
    explorer.close()


def test_the_first_sample_leaves_the_layout_as_it_was_left(
    model_folder: Path, qapp: QApplication, qtbot: QtBot
) -> None:
    place = {"title": "A small model", "line": "", "site": "decoder.self", "layer": 0, "head": 0}
    sample = Sample(folder=str(model_folder / "decoder"), text="abc", **place)
    explorer = build(qapp, Settings(theme="light", layout="train"), samples=(sample,))
    explorer.window.show()
    explorer.start()
    wait_until_idle(qtbot, explorer)
    assert explorer.store.state.current_model is not None
    assert explorer.store.state.layout == "train"
    explorer.close()


@pytest.mark.parametrize("is_broken", [False, True])
def test_what_is_opened_is_on_screen_though_one_trained_the_last_time(
    launch: Launch, model_folder: Path, tmp_path: Path, *, is_broken: bool
) -> None:
    (tmp_path / "empty.safetensors").touch()
    path = tmp_path / "empty.safetensors" if is_broken else model_folder / "decoder"
    window = launch(path, TEXT, settings=Settings(theme="light", layout="train")).window
    matrix = window.host("matrix")
    assert matrix.isVisible()
    said = " ".join(label.text() for label in matrix.findChildren(QLabel) if label.isVisible())
    assert ("empty.safetensors" in said) == is_broken
    assert (matrix.picture is None) == is_broken


def test_the_title_names_the_model_and_leaves_the_program_to_qt_which_adds_it_to_every_window(
    launch: Launch, model_folder: Path, qapp: QApplication
) -> None:
    assert launch().window.windowTitle() == qapp.applicationDisplayName()
    assert launch(model_folder / "decoder", TEXT).window.windowTitle() == "decoder"


def test_what_a_command_does_is_never_written_over_the_line_at_the_bottom(launch: Launch, model_folder: Path) -> None:
    window = launch(model_folder / "decoder", TEXT).window
    for action in window.actions():
        action.showStatusText(window)
        assert window.statusBar().currentMessage() == ""


def test_what_was_not_caught_is_told_with_its_traceback_and_logged(
    launch: Launch, qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    explorer = launch()
    hooks = FaultHooks(explorer.faults.deliver)
    try:
        raise ValueError("seven")
    except ValueError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        hooks.remove()
    qtbot.waitUntil(lambda: bool(explorer.store.state.notices))
    notice = explorer.store.state.notices[-1]
    assert "seven" in notice.text
    assert "in test_what_was_not_caught" in notice.details
    assert "seven" in caplog.text


def test_what_was_not_caught_on_another_thread_is_told_too(
    launch: Launch, qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    explorer = launch()
    hooks = FaultHooks(explorer.faults.deliver)

    def stumble() -> None:
        raise ValueError("eight")

    thread = threading.Thread(target=stumble)
    thread.start()
    thread.join()
    hooks.remove()
    qtbot.waitUntil(lambda: bool(explorer.store.state.notices))
    assert "eight" in explorer.store.state.notices[-1].text


def test_messages_are_kept_with_their_details(launch: Launch) -> None:
    explorer = launch()
    explorer.store.settle(add_notice(Notice(severity="warning", text="Disk is full", details="47 bytes left")))
    explorer.window.toggle_panel("messages")
    messages = explorer.window.host("messages").findChild(QListWidget)
    assert messages is not None
    assert messages.item(0).text() == "Disk is full"


def test_closing_while_a_model_runs_cancels_it_and_ends_every_thread(
    model_folder: Path, qapp: QApplication, qtbot: QtBot
) -> None:
    engine = SlowEngine()
    explorer = build(qapp, Settings(theme="light"), engine=engine, samples=())
    explorer.window.show()
    explorer.start(model_folder / "decoder", ModelInput(text=TEXT))
    qtbot.waitUntil(engine.is_tracing.is_set, timeout=30_000)
    explorer.window.close()
    assert not [thread for thread in threading.enumerate() if thread.name.endswith("lane")]


def test_work_can_be_stopped_and_taken_up_again(model_folder: Path, qapp: QApplication, qtbot: QtBot) -> None:
    engine = SlowEngine()
    explorer = build(qapp, Settings(theme="light"), engine=engine, samples=())
    explorer.window.show()
    explorer.start(model_folder / "decoder", ModelInput(text=TEXT))
    qtbot.waitUntil(engine.is_tracing.is_set, timeout=30_000)
    explorer.controller.cancel()
    assert explorer.controller.is_idle
    engine.is_tracing.clear()
    explorer.controller.retry()
    qtbot.waitUntil(engine.is_tracing.is_set)
    explorer.close()


def test_closing_twice_does_it_once(launch: Launch, model_folder: Path) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    explorer.close()
    explorer.close()


def test_settings_that_cannot_be_written_do_not_keep_the_window_from_closing(
    launch: Launch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    explorer = launch(keeper=SettingsStore(tmp_path / "file" / "settings.json"))
    with caplog.at_level(logging.ERROR):
        explorer.close()
    assert "settings cannot be saved" in caplog.text and "[Errno" not in caplog.text


def test_settings_that_cannot_be_written_are_said_once(launch: Launch, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    explorer = launch(keeper=SettingsStore(tmp_path / "file" / "settings.json"))
    for colormap in ("magma", "grey"):
        explorer.store.settle(set_display(colormap=colormap))
        qtbot.waitUntil(lambda: not explorer._saving.isActive())
    said = [notice.text for notice in explorer.store.state.notices if "is not remembered" in notice.text]
    assert len(said) == 1 and str(tmp_path / "file") in said[0]
    assert "; free some space or allow writing there" in said[0] and "choose" not in said[0].partition(str(tmp_path))[2]


def test_the_window_is_painted_before_torch_is_imported() -> None:
    script = """
import sys
from explorer.app import build, make_application
from explorer.settings.schema import Settings
application = make_application(["test"])
explorer = build(application, Settings())
explorer.start_when_painted(None)
explorer.window.first_painted.connect(lambda: print("painted", "torch" in sys.modules))
explorer.window.show()
while not explorer.controller.is_idle:
    application.processEvents()
explorer.close()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "painted False\n"


@pytest.mark.parametrize("layout", ["explore", "train", "learn"])
def test_every_control_says_what_it_does(launch: Launch, qtbot: QtBot, model_folder: Path, layout: LayoutName) -> None:
    explorer = launch(model_folder / "translator", "a cat", target="a mat")
    explorer.store.settle(set_layout(layout))
    wait_until_idle(qtbot, explorer)
    kinds = (QToolButton, QPushButton, QComboBox, QAbstractSpinBox, QLineEdit)
    controls = [widget for kind in kinds for widget in explorer.window.findChildren(kind) if widget.isVisible()]
    silent = [
        widget
        for widget in controls
        if not widget.toolTip() and widget.parentWidget() not in controls  # the field of a spin box
    ]
    assert len(controls) > 10 and not silent


def test_a_second_strip_of_tokens_takes_room_and_gives_it_back(
    launch: Launch, qtbot: QtBot, model_folder: Path
) -> None:
    explorer = launch(model_folder / "translator", "a cat", target="a mat")
    host, heights = explorer.window.host("tokens"), []
    for site in ("decoder.self", "decoder.cross", "decoder.self"):
        explorer.store.settle(pick_site(site))
        wait_until_idle(qtbot, explorer)
        qtbot.waitUntil(lambda: host.height() == host.panel.minimumSizeHint().height())
        heights.append(host.height())
    assert heights[0] == heights[2] < heights[1]


def test_the_first_window_is_no_larger_than_the_screen(qapp: QApplication) -> None:
    explorer = build(qapp, Settings(theme="light"), samples=())
    first, room = explorer.window.size(), qapp.primaryScreen().availableSize()
    explorer.close()
    assert first == first.boundedTo(room)


def is_field(widget: QWidget | None) -> bool:
    return isinstance(widget, QLineEdit | QAbstractSpinBox | QComboBox | QPushButton | QToolButton)


def test_a_tab_chosen_by_key_leaves_the_next_key_to_shortcuts(launch: Launch, qtbot: QtBot, model_folder: Path) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    window = explorer.window
    window.activateWindow()
    window.host("matrix").panel.take_focus()
    n_tabs = sum(host.spec.area == "centre" and "explore" in host.spec.layouts for host in window._hosts.values())
    for number in (*range(n_tabs), 0):
        window.show_centre_tab(number)
        wait_until_idle(qtbot, explorer)
        assert window.focusWidget() is not None and not is_field(window.focusWidget()), number
    assert window.host("matrix").panel.isAncestorOf(window.focusWidget())


def test_a_layout_leaves_the_next_key_to_shortcuts_whatever_field_it_hides(
    launch: Launch, qtbot: QtBot, model_folder: Path
) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    window = explorer.window
    window.activateWindow()
    layouts: tuple[LayoutName, ...] = ("learn", "train", "explore", "train")
    for layout in layouts:
        field = next(
            widget
            for widget in window.findChildren(QAbstractSpinBox) + window.findChildren(QLineEdit)
            if widget.isVisible() and widget.isEnabled() and not window._bars.isAncestorOf(widget)
        )
        field.setFocus()
        window.show_layout(layout)
        wait_until_idle(qtbot, explorer)
        assert window.focusWidget() is not None and not is_field(window.focusWidget()), layout
