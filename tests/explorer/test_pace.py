from __future__ import annotations

import pytest

from explorer.pace import Pace


def frames(cost: float, seconds: float = 10.0, tick: float = 0.03) -> int:
    """Frames drawn when each takes `cost` seconds of the thread, asked for every `tick`."""
    now = used = 0.0
    pace = Pace(lambda: now, lambda: used)
    drawn = 0
    while now < seconds:
        if pace.is_due():
            drawn += 1
            used += cost
        now += tick
    return drawn


def test_frames_that_cost_nothing_are_drawn_whenever_asked() -> None:
    assert frames(cost=0.0) == pytest.approx(10.0 / 0.03, abs=2)


def test_drawing_takes_seven_hundredths_of_the_time() -> None:
    assert frames(cost=0.01) * 0.01 == pytest.approx(0.7, rel=0.25)


def test_the_picture_is_never_older_than_a_quarter_of_a_second() -> None:
    assert frames(cost=10.0) >= 10.0 / (0.25 + 0.03) - 1
