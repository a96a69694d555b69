import math

import numpy as np
import pytest

from core_model.training.settings import TrainingSettings
from explorer.workers.training_log import TrainingLog
from tests.explorer.training_events import event, probe


@pytest.fixture
def log() -> TrainingLog:
    return TrainingLog(TrainingSettings())


def test_before_the_first_update_there_is_nothing(log):
    assert log.last is None and log.snapshot() is None


def test_every_update_is_one_entry_in_each_column(log):
    for step in (1, 2, 3):
        log.append(event(step))
    found = log.snapshot()
    assert found.steps.tolist() == [1, 2, 3]
    assert found.loss.tolist() == [1.0, 0.5, 1 / 3]
    assert found.grad_norm.tolist() == [2.0, 4.0, 6.0]
    assert np.isnan(found.loss_scale).all()


def test_more_updates_than_there_was_room_for_lose_nothing(log):
    for step in range(1, 3001):
        log.append(event(step))
    assert log.snapshot().tokens_per_second.tolist() == [1000.0 + step for step in range(1, 3001)]


def test_a_snapshot_stays_as_it_was_while_the_training_goes_on(log):
    log.append(event(1))
    before = log.snapshot()
    for step in range(2, 2000):
        log.append(event(step))
    assert before.loss.tolist() == [1.0] and before.last.step == 1


def test_a_snapshot_cannot_be_written(log):
    log.append(event(1))
    with pytest.raises(ValueError, match="read-only"):
        log.snapshot().loss[0] = 7.0


def test_accuracy_and_probe_are_those_measured_last(log):
    seen = probe()
    log.append(event(1, accuracy=0.1, probe=seen))
    log.append(event(2))
    log.append(event(3, accuracy=0.4))
    found = log.snapshot()
    assert (found.accuracy_steps.tolist(), found.accuracy.tolist()) == ([1, 3], [0.1, 0.4])
    assert found.probe is seen


def test_an_infinite_norm_is_kept_as_it_is(log):
    log.append(event(1, grad_norm=math.inf))
    assert log.snapshot().grad_norm.tolist() == [math.inf]
