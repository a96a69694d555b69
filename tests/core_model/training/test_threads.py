import os

import pytest
import torch

from core_model.errors import ConfigError
from core_model.training.threads import UPDATES_EACH, ThreadTrial

CPU = torch.device("cpu")


@pytest.fixture
def four_cores(monkeypatch):
    set_to = []
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 6, 7}, raising=False)
    monkeypatch.setattr(torch, "set_num_threads", set_to.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: set_to[-1] if set_to else 4)
    return set_to


def settle(trial, seconds_of):
    tried = []
    for _ in range(3 * UPDATES_EACH):
        trial.before_update()
        tried.append(trial.chosen)
        trial.after_update(seconds_of[trial.chosen])
    trial.before_update()
    return tried


@pytest.mark.parametrize(
    ("seconds_of", "chosen"),
    [({1: 1.0, 2: 2.0, 4: 3.0}, 1), ({1: 4.0, 2: 2.0, 4: 1.0}, 4), ({1: 1.0, 2: 0.9, 4: 0.85}, 1)],
)
def test_more_threads_are_used_where_they_are_clearly_faster(four_cores, seconds_of, chosen):
    trial = ThreadTrial(None, CPU)
    tried = settle(trial, seconds_of)
    assert sorted(tried) == sorted([1, 2, 4] * UPDATES_EACH)
    assert trial.chosen == chosen == four_cores[-1]


def test_every_core_counts_where_the_system_tells_of_no_choice_of_them(four_cores, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    ThreadTrial(64, CPU)
    with pytest.raises(ConfigError, match="64 cores may be used"):
        ThreadTrial(65, CPU)


def test_one_slow_update_decides_nothing(four_cores):
    trial = ThreadTrial(None, CPU)
    hiccups = iter([60.0] + [1.0] * 100)
    for _ in range(3 * UPDATES_EACH):
        trial.before_update()
        trial.after_update(next(hiccups) if trial.chosen == 1 else 2.0)
    trial.before_update()
    assert trial.chosen == 1


def test_a_given_number_of_threads_is_used_as_it_is(four_cores):
    trial = ThreadTrial(3, CPU)
    assert settle(trial, {3: 1.0}) == [3] * 3 * UPDATES_EACH
    assert four_cores == [3]
