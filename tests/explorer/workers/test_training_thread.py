from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from dataclasses import replace
from queue import Queue
from typing import Any

import pytest

from core_model.checkpoint import native, open_checkpoint
from core_model.training import symbol_data
from core_model.training.settings import TrainingSettings
from explorer.workers.training import TrainingThread

PATIENCE = 30.0
SMALL = TrainingSettings(
    d_model=16, n_heads=2, n_layers=1, d_hidden=16, length=4, batch=4, steps=5, warmup=1, threads=1, watch_every=5
)
ENDLESS = replace(SMALL, steps=1_000_000)


class Told:
    """What the thread reported, in order."""

    def __init__(self) -> None:
        self.queue: Queue[dict[str, Any]] = Queue()
        self.threads: set[int] = set()
        self.facts: dict[str, Any] = {}
        self.all: list[dict[str, Any]] = []

    def __call__(self, facts: dict[str, Any]) -> None:
        self.threads.add(threading.get_ident())
        self.all.append(facts)
        self.queue.put(facts)

    def until(self, phase: str) -> dict[str, Any]:
        """All facts as they are when this phase is reported."""
        while self.facts.get("phase") != phase:
            self.facts |= self.queue.get(timeout=PATIENCE)
        return self.facts


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def thread(told: Told) -> Iterator[TrainingThread]:
    thread = TrainingThread(told)
    yield thread
    assert thread.close(PATIENCE)


def test_a_training_ends_saved_in_a_numbered_folder_and_says_so(thread, told, tmp_path):
    thread.start(SMALL, tmp_path)
    facts = told.until("finished")
    assert facts["run"] == tmp_path / "reverse-1"
    assert (facts["saved_step"], facts["n_threads"]) == (5, 1)
    assert facts["target"] == facts["text"][::-1]
    with open_checkpoint(facts["run"]) as checkpoint:
        assert checkpoint.info.refusal is None


def test_numbers_of_every_update_are_there_to_be_read(thread, told, tmp_path):
    thread.start(SMALL, tmp_path)
    told.until("finished")
    found = thread.snapshot(None)
    assert found is not None and found.steps.tolist() == [1, 2, 3, 4, 5]
    assert thread.snapshot(found) is None


def test_work_is_done_and_reported_on_another_thread(thread, told, tmp_path):
    thread.start(SMALL, tmp_path)
    told.until("finished")
    assert threading.get_ident() not in told.threads


def test_stop_saves_what_was_learned(thread, told, tmp_path):
    thread.start(ENDLESS, tmp_path)
    told.until("running")
    thread.control.stop()
    facts = told.until("finished")
    last = thread.snapshot(None)
    assert facts["saved_step"] == (None if last is None else last.last.step)


def test_a_save_on_the_way_is_reported(thread, told, tmp_path):
    thread.start(replace(SMALL, save_every=2), tmp_path)
    told.until("finished")
    steps = [facts["saved_step"] for facts in told.all if facts["saved_step"] is not None]
    assert sorted(set(steps)) == [2, 4, 5] and steps == sorted(steps)


def test_what_cannot_be_trained_is_told_in_its_own_words(thread, told, tmp_path):
    settings = replace(SMALL, task="language_model", text=tmp_path / "gone.txt")
    thread.start(settings, tmp_path)
    facts = told.until("failed")
    assert "gone.txt cannot be read" in facts["problem"]
    assert not thread.can_save_again


def _full_disk(*arguments: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_and_saving_again_loses_nothing(thread, told, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(native, "write_weights", _full_disk)
        thread.start(SMALL, tmp_path)
        facts = told.until("failed")
    assert "disk is full" in facts["problem"] and "Save again" in facts["problem"] and thread.can_save_again
    thread.save_again()
    facts = told.until("finished")
    assert (facts["saved_step"], facts["problem"]) == (5, "")


def test_a_run_that_its_disk_refuses_can_be_saved_in_another_folder(thread, told, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(native, "write_weights", _full_disk)
        thread.start(SMALL, tmp_path / "full")
        told.until("failed")
    thread.save_again(tmp_path / "elsewhere")
    assert told.until("finished")["run"] == tmp_path / "elsewhere"
    assert (tmp_path / "elsewhere" / "model.safetensors").is_file()


def _out_of_memory_after(n_updates: int) -> Any:
    draw, drawn = symbol_data.SymbolData.batch, []

    def batch(self: Any, generator: Any, size: int) -> Any:
        drawn.append(size)
        if len(drawn) > n_updates:
            raise MemoryError("out of memory")
        return draw(self, generator, size)

    return batch


def test_a_training_that_failed_after_it_was_saved_is_not_to_be_saved_again(thread, told, tmp_path, monkeypatch):
    monkeypatch.setattr(symbol_data.SymbolData, "batch", _out_of_memory_after(3))
    thread.start(SMALL, tmp_path)
    facts = told.until("failed")
    assert facts["problem"] == "MemoryError: out of memory" and "Traceback" in facts["details"]
    assert facts["saved_step"] == 3 and not thread.can_save_again


def test_a_training_that_failed_and_could_not_be_saved_can_be_saved_again(thread, told, tmp_path, monkeypatch):
    monkeypatch.setattr(symbol_data.SymbolData, "batch", _out_of_memory_after(3))
    with monkeypatch.context() as patch:
        patch.setattr(native, "write_weights", _full_disk)
        thread.start(SMALL, tmp_path)
        facts = told.until("failed")
    assert "out of memory" in facts["problem"] and "Save again" in facts["problem"] and thread.can_save_again
    thread.save_again()
    assert told.until("finished")["saved_step"] == 3


def test_weights_that_are_not_finite_are_not_to_be_saved_again(thread, told, tmp_path):
    thread.start(replace(SMALL, peak_learning_rate=1e30, clip=None), tmp_path)
    facts = told.until("failed")
    assert "Nothing was saved." in facts["problem"] and not thread.can_save_again
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_fails_on_the_way_is_told_until_one_succeeds(thread, told, tmp_path, monkeypatch):
    refusals = iter([OSError(errno.ENOSPC, "No space left on device")])

    def refuse_once(*arguments: Any) -> None:
        for error in refusals:
            raise error
        write(*arguments)

    write = native.write_weights
    monkeypatch.setattr(native, "write_weights", refuse_once)
    thread.start(replace(SMALL, save_every=2), tmp_path)
    told.until("finished")
    problems = [facts["problem"] for facts in told.all if facts["saved_step"] is None]
    assert "disk is full" in problems[-1]
    assert {facts["problem"] for facts in told.all if facts["saved_step"] is not None} == {""}


def test_a_training_that_saved_nothing_leaves_no_folder(thread, told, tmp_path):
    thread.start(replace(SMALL, task="language_model", text=tmp_path / "gone.txt"), tmp_path)
    told.until("failed")
    assert list(tmp_path.iterdir()) == []


def test_another_training_can_follow_at_once(thread, told, tmp_path):
    for number in (1, 2):
        thread.start(SMALL, tmp_path)
        assert told.until("finished")["run"] == tmp_path / f"reverse-{number}"
        told.facts.clear()


def test_closing_stops_saves_and_waits(told, tmp_path):
    thread = TrainingThread(told)
    thread.start(ENDLESS, tmp_path)
    told.until("running")
    assert thread.close(PATIENCE) and not thread.is_busy
    last = thread.snapshot(None)
    assert last is None or (tmp_path / "reverse-1" / "model.safetensors").exists()


def test_closing_without_a_training_is_quick(told):
    assert TrainingThread(told).close(0.0)
