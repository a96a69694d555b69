from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from explorer.verbs.progress import ProgressLine, bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch):
    """A clock that the test sets."""

    class Clock:
        now = 0.0

    monkeypatch.setattr("explorer.verbs.progress.time.monotonic", lambda: Clock.now)
    return Clock


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    terminal = Terminal()
    monkeypatch.setattr("explorer.verbs.progress.sys", SimpleNamespace(stderr=terminal))
    return terminal


def test_the_line_appears_after_a_moment_is_renewed_ten_times_a_second_and_goes(clock, terminal):
    with ProgressLine("train") as line:
        line.show(0.1)
        assert terminal.getvalue() == ""
        clock.now = 0.31
        line.show(0.5, "loss 1")
        line.show(0.51)
        clock.now = 0.42
        line.show(0.6)
    shown = terminal.getvalue()
    assert shown.count("train [") == 2 and "50% loss 1" in shown and "51%" not in shown
    assert shown.endswith("\r\x1b[K")


def test_a_note_stays_and_clears_the_line_before_it(clock, terminal):
    with ProgressLine("train") as line:
        clock.now = 1.0
        line.show(0.5)
        line.note("a warning")
    assert terminal.getvalue().endswith("\r\x1b[Ka warning\n")


def test_nothing_is_drawn_where_nobody_watches(clock, capsys):
    with ProgressLine("train") as line:
        clock.now = 1.0
        line.show(0.5)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("fraction", "n_full"), [(-1, 0), (0, 0), (0.5, 12), (1, 24), (2, 24)])
def test_the_bar_has_a_fixed_width(fraction, n_full):
    assert bar(fraction) == f"[{'#' * n_full}{'-' * (24 - n_full)}]"
