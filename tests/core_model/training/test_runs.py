import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core_model.cancel import CancelToken
from core_model.checkpoint import native, open_checkpoint
from core_model.errors import Cancelled, TrainingError
from core_model.trace import run_trace
from core_model.training.control import TrainControl
from core_model.training.runs import Run, claimed_run_folder
from core_model.training.settings import TrainingSettings

SMALL = TrainingSettings(
    task="reverse", d_model=16, n_heads=2, n_layers=1, d_hidden=32, length=4, batch=8, steps=6, warmup=2, threads=1
)


def run_all(run: Run, control: TrainControl | None = None, cancel: CancelToken | None = None) -> list[Any]:
    return list(run.events(cancel=cancel or CancelToken(), control=control or TrainControl()))


@pytest.fixture
def run(tmp_path):
    return Run(SMALL, tmp_path / "run")


@pytest.fixture
def full_disk(monkeypatch):
    """The disk refuses every write from now on; the value gives it room again."""

    def refuse(folder, tensors):
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    real = native.write_weights
    monkeypatch.setattr(native, "write_weights", refuse)
    return lambda: monkeypatch.setattr(native, "write_weights", real)


@pytest.mark.parametrize("task", ["copy", "reverse", "language_model"])
def test_a_saved_run_opens_and_its_attention_is_what_was_watched(tmp_path, task):
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat and the dog sat on the log. " * 4)
    run: Any = Run(replace(SMALL, task=task, text=text), tmp_path / "run")
    *_, last = run_all(run)
    with open_checkpoint(run.folder) as checkpoint:
        assert checkpoint.info.refusal is None and not checkpoint.info.warnings
        model, probe, tokenizer = checkpoint.load_model(), run.training.data.probe, run.training.data.tokenizer
        inputs: Any = checkpoint.encode(tokenizer.decode(probe.ids), target=tokenizer.decode(probe.decoder_ids or ()))
        assert tuple(inputs.ids) == probe.ids
        assert inputs.decoder_ids is None or tuple(inputs.decoder_ids) == probe.decoder_ids
    trace = run_trace(model, inputs)
    for site, seen in last.probe.sites.items():
        for layer, head in np.ndindex(seen.weights.shape[:2]):
            np.testing.assert_allclose(trace.attention(site, layer, head), seen.weights[layer, head], atol=1e-6)


def test_run_file_holds_the_settings_and_one_entry_an_update(run):
    events = run_all(run)
    record = json.loads((run.folder / "run.json").read_text())
    assert record["settings"]["task"] == "reverse" and record["settings"]["betas"] == [0.9, 0.98]
    assert record["history"]["loss"] == [event.loss for event in events]
    assert record["history"]["learning_rate"] == [event.learning_rate for event in events]
    assert record["accuracy"] == [[event.step, event.accuracy] for event in events if event.accuracy is not None]
    assert record["threads"] == 1


def test_a_run_is_saved_on_the_way_and_at_the_end(run):
    settings = replace(SMALL, save_every=4)
    run = Run(settings, run.folder)
    saved = []
    for _ in run.events(cancel=CancelToken(), control=TrainControl()):
        saved.append(run.saved_step)
    assert saved == [None, None, None, 4, 4, 4]
    assert run.saved_step == 6


def test_a_stopped_run_is_saved_as_far_as_it_came(run):
    control = TrainControl()
    for event in run.events(cancel=CancelToken(), control=control):
        if event.step == 3:
            control.stop()
    assert run.saved_step == 3
    assert len(json.loads((run.folder / "run.json").read_text())["history"]["loss"]) == 3


def test_a_run_stopped_before_its_first_update_leaves_no_folder(run):
    control = TrainControl()
    control.stop()
    assert run_all(run, control) == []
    assert not run.folder.exists()


def test_an_opened_run_tells_how_far_it_came_and_the_example_it_was_watched_on(run):
    control = TrainControl()
    for event in run.events(cancel=CancelToken(), control=control):
        if event.step == 2:
            control.stop()
    with open_checkpoint(run.folder) as checkpoint:
        told = checkpoint.info.run
        assert told is not None and told.progress == "step 2 of 6"
        assert told.target == told.text[::-1] != ""
        encoded = checkpoint.encode(told.text, target=told.target)
    probe = run.training.data.probe
    np.testing.assert_array_equal(encoded.ids, probe.ids)
    np.testing.assert_array_equal(encoded.decoder_ids, probe.decoder_ids)


@pytest.mark.parametrize(
    "damage", ["", "{}", "[1]", '{"settings": {"steps": "many"}, "history": {"loss": []}}', "\xff"]
)
def test_a_damaged_record_is_a_warning_and_the_model_opens_all_the_same(run, damage):
    run_all(run)
    (run.folder / "run.json").write_text(damage, encoding="latin-1")
    with open_checkpoint(run.folder) as checkpoint:
        info = checkpoint.info
    assert info.refusal is None and info.run is None
    assert any("run.json is damaged" in warning for warning in info.warnings)


def test_a_cancelled_run_is_saved_too(run):
    cancel = CancelToken()
    with pytest.raises(Cancelled):
        for _ in run.events(cancel=cancel, control=TrainControl()):
            cancel.cancel()
    assert run.saved_step == 1


def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path, full_disk):
    run = Run(SMALL, tmp_path / "run")
    with pytest.raises(
        TrainingError, match=r"Step 6 could not be saved in .*run: the disk is full \(\d+ MiB free\); free"
    ):
        run_all(run)
    assert list(tmp_path.iterdir()) == []
    assert not run.save_problem
    full_disk()
    run.save()
    assert run.saved_step == 6
    with open_checkpoint(run.folder) as checkpoint:
        saved = checkpoint.load_model().state_dict()
    for name, weight in run.training.model.state_dict().items():
        torch.testing.assert_close(saved[name], weight, rtol=0, atol=0)


def test_a_failed_save_leaves_the_last_good_checkpoint(tmp_path, request):
    run = Run(replace(SMALL, save_every=2), tmp_path / "run")
    events = run.events(cancel=CancelToken(), control=TrainControl())
    assert [next(events).step for _ in range(3)] == [1, 2, 3]
    before = (run.folder / "model.safetensors").read_bytes()
    request.getfixturevalue("full_disk")
    with pytest.raises(TrainingError, match=r"Step 2 is kept in .*/run\."):
        list(events)
    assert (run.folder / "model.safetensors").read_bytes() == before


def test_a_run_can_be_saved_elsewhere(run, tmp_path):
    run_all(run)
    assert run.save(tmp_path / "other") == tmp_path / "other"
    with open_checkpoint(tmp_path / "other") as checkpoint:
        assert checkpoint.info.refusal is None


def test_a_failed_save_elsewhere_leaves_the_run_where_it_was(tmp_path, full_disk):
    run = Run(SMALL, tmp_path / "run")
    with pytest.raises(TrainingError):
        run_all(run)
    with pytest.raises(TrainingError, match=r"in .*other: the disk is full"):
        run.save(tmp_path / "other")
    assert run.folder == tmp_path / "run"


def test_a_folder_in_use_is_not_taken_for_a_run_saved_elsewhere(run, tmp_path):
    run_all(run)
    (tmp_path / "model.safetensors").write_text("somebody's")
    with pytest.raises(TrainingError, match="not empty: choose another folder"):
        run.save(tmp_path)
    assert (tmp_path / "model.safetensors").read_text() == "somebody's"


def test_weights_that_are_not_finite_never_replace_good_ones(tmp_path):
    run: Any = Run(replace(SMALL, save_every=2), tmp_path / "run")
    events = run.events(cancel=CancelToken(), control=TrainControl())
    assert [next(events).step for _ in range(3)] == [1, 2, 3]
    before = (run.folder / "model.safetensors").read_bytes()
    with torch.no_grad():
        run.training.model.decoder.final_norm.bias[0] = torch.nan
    with pytest.raises(TrainingError, match=r"step 4: decoder\.final_norm\.bias is nan"):
        next(events)
    assert (run.saved_step, (run.folder / "model.safetensors").read_bytes()) == (2, before)


def test_what_weights_that_give_nan_leave_is_told_and_is_what_was_saved_before(tmp_path):
    run = Run(replace(SMALL, peak_learning_rate=1e20, warmup=0, schedule="constant", clip=None), tmp_path / "run")
    with pytest.raises(TrainingError, match=r"after step 1: .* is (nan|infinite)\..* Nothing was saved\.$"):
        run_all(run)
    assert not run.has_unsaved and not run.folder.exists()


@pytest.mark.parametrize("rate", [1e20, 1e39])
@pytest.mark.parametrize("steps", [4, 6])
def test_weights_are_saved_only_when_what_they_predict_is_finite(tmp_path, rate, steps):
    """Step 4 is the last, or one saved on the way; its update is the first at that rate."""
    run: Any = Run(replace(SMALL, steps=steps, save_every=2, watch_every=1000, clip=None), tmp_path / "run")
    events = run.events(cancel=CancelToken(), control=TrainControl())
    assert [next(events).step for _ in range(3)] == [1, 2, 3]
    before = (run.folder / "model.safetensors").read_bytes()
    run.training._optimizer.register_step_pre_hook(
        lambda optimizer, *given: [group.update(lr=rate) for group in optimizer.param_groups] and None
    )
    with pytest.raises(TrainingError, match=r"after step 4: .*Step 2 is kept in .*run\.$"):
        list(events)
    assert (run.saved_step, (run.folder / "model.safetensors").read_bytes()) == (2, before)


def test_a_run_stopped_with_weights_that_are_not_finite_saves_none(run):
    control, events = TrainControl(), []
    with pytest.raises(TrainingError, match=r"Step 3 is not saved: its weights are not finite\. Nothing was saved\."):
        for event in run.events(cancel=CancelToken(), control=control):
            events.append(event)
            if event.step == 3:
                with torch.no_grad():
                    run.training.model.decoder.final_norm.bias[0] = torch.inf
                control.stop()
    assert len(events) == 3 and not run.folder.exists()


def test_gradients_that_are_not_finite_leave_the_weights_before_them_saved(run):
    events = run.events(cancel=CancelToken(), control=TrainControl())
    assert [next(events).step for _ in range(2)] == [1, 2]
    before = {name: weight.clone() for name, weight in run.training.model.state_dict().items()}
    run.training.model.decoder.final_norm.bias.register_hook(lambda gradient: gradient * torch.nan)
    with pytest.raises(TrainingError, match=r"step 3: gradient of .* is nan.* Step 2 is kept in .*run\.$"):
        next(events)
    with open_checkpoint(run.folder) as checkpoint:
        for name, weight in checkpoint.load_model().state_dict().items():
            torch.testing.assert_close(weight, before[name], rtol=0, atol=0)


def _out_of_memory_at(run, step):
    draw, drawn = run.training.data.batch, []

    def batch(generator, size):
        drawn.append(size)
        if len(drawn) == step:
            raise torch.OutOfMemoryError("out of memory")
        return draw(generator, size)

    run.training.data.batch = batch


def test_a_run_that_ends_by_another_error_is_saved_as_far_as_it_came(run):
    _out_of_memory_at(run, step=4)
    with pytest.raises(torch.OutOfMemoryError):
        run_all(run)
    assert run.saved_step == 3 and (run.folder / "model.safetensors").is_file()


def test_an_error_is_told_also_where_saving_after_it_fails(run, full_disk):
    _out_of_memory_at(run, step=4)
    with pytest.raises(TrainingError, match=r"^out of memory Step 3 could not be saved in .* disk is full"):
        run_all(run)
    assert run.has_unsaved


def test_a_save_that_fails_on_the_way_is_told_and_made_up_for_by_the_next(tmp_path, monkeypatch):
    """A file that another program holds open cannot be replaced on Windows."""
    run = Run(replace(SMALL, save_every=2), tmp_path / "run")
    replace_file = Path.replace

    def held_open(self, target):
        if self.name == "model.safetensors":
            raise PermissionError(errno.EACCES, "Access is denied")
        return replace_file(self, target)

    told = []
    for event in run.events(cancel=CancelToken(), control=TrainControl()):
        told.append((run.saved_step, bool(run.save_problem)))
        monkeypatch.setattr(Path, "replace", held_open if event.step == 3 else replace_file)
    assert told == [(None, False), (2, False), (2, False), (2, True), (2, True), (2, True)]
    assert run.saved_step == 6 and not run.save_problem


def test_a_folder_in_use_is_never_written_over(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(TrainingError, match="not empty: choose another folder"):
        Run(SMALL, tmp_path)


def test_a_disk_without_room_is_refused_before_training(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(TrainingError, match=r"has 0 MiB free.*takes 1 MiB"):
        Run(SMALL, tmp_path / "run")


def test_a_folder_that_may_not_be_written_is_refused_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(TrainingError, match=r"Nothing can be written into .*: choose another folder"):
        Run(SMALL, tmp_path / "new" / "run")


def test_a_folder_under_a_file_is_refused_before_training(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(TrainingError, match=r"Nothing can be written into .*notes\.txt"):
        Run(SMALL, tmp_path / "notes.txt" / "run")


def test_what_a_person_puts_into_the_run_stays_there(tmp_path):
    run = Run(replace(SMALL, save_every=2), tmp_path / "run")
    for event in run.events(cancel=CancelToken(), control=TrainControl()):
        if event.step == 3:
            (run.folder / "notes.txt").write_text("looks good")
    assert run.saved_step == 6
    assert (run.folder / "notes.txt").read_text() == "looks good"


def test_trainings_that_start_together_get_folders_of_their_own(tmp_path):
    (tmp_path / "sort-1").mkdir()
    (tmp_path / "sort-1" / "mine.txt").write_text("mine")
    with claimed_run_folder(tmp_path, "sort") as one, claimed_run_folder(tmp_path, "sort") as other:
        assert (one, other) == (tmp_path / "sort-2", tmp_path / "sort-3")
        run_all(Run(SMALL, other))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sort-1", "sort-3"]


def test_a_folder_for_runs_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("mine")
    with (
        pytest.raises(TrainingError, match=r"file: .*; choose another folder"),
        claimed_run_folder(tmp_path / "file", "x"),
    ):
        pass
