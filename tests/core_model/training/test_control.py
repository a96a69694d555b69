import threading

import pytest

from core_model.cancel import CancelToken
from core_model.errors import Cancelled
from core_model.training.control import TrainControl
from tests.core_model.watched_control import WatchedControl


@pytest.fixture
def admitted():
    """Asks for updates on another thread; gives the answers as they come."""

    class Asking:
        def __init__(self):
            self.control, self.cancel = WatchedControl(), CancelToken()
            self.answer = None

        def start(self):
            self.thread = threading.Thread(target=self._ask)
            self.thread.start()

        def _ask(self):
            try:
                self.answer = self.control.admit(self.cancel)
            except Cancelled:
                self.answer = "cancelled"

        def result(self):
            self.thread.join(5)
            assert not self.thread.is_alive()
            return self.answer

    return Asking()


def test_a_running_training_is_admitted_at_once():
    assert TrainControl().admit(CancelToken())


@pytest.mark.parametrize(("action", "answer"), [("resume", True), ("step", True), ("stop", False)])
def test_a_paused_training_waits_until_told(admitted, action, answer):
    admitted.control.pause()
    admitted.start()
    while not admitted.control.holding:
        admitted.thread.join(0.001)
    assert admitted.answer is None
    getattr(admitted.control, action)()
    assert admitted.result() is answer and not admitted.control.holding


def test_a_paused_training_heeds_cancel(admitted):
    admitted.control.pause()
    admitted.start()
    admitted.cancel.cancel()
    assert admitted.result() == "cancelled"


def test_each_single_step_admits_one_update_and_the_pause_stays():
    control = TrainControl()
    control.step()
    control.step()
    assert control.paused
    assert control.admit(CancelToken()) and control.admit(CancelToken())
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        control.admit(cancel)


def test_stop_wins_over_resume():
    control = TrainControl()
    control.stop()
    control.resume()
    assert control.stopped and not control.admit(CancelToken())
