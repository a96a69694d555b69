from __future__ import annotations

import errno
import json
import signal
from typing import Any

import pytest

from core_model.checkpoint import native, open_checkpoint
from core_model.training.settings import TrainingSettings
from tests.explorer.cli.conftest import Cli

SMALL = ("--d-model", 8, "--heads", 2, "--layers", 1, "--d-hidden", 16, "--batch", 4, "--length", 5, "--threads", 1)


def test_a_run_is_saved_and_opens_like_any_checkpoint(cli: Cli, tmp_path):
    done = cli("train", "--task", "reverse", "--steps", 10, *SMALL, "--out", tmp_path / "run")
    assert done.status == 0, done.err
    assert done.out.startswith(f"{tmp_path / 'run'}: trained and saved after step 10 of 10, loss ")
    with open_checkpoint(tmp_path / "run") as checkpoint:
        assert [site.site for site in checkpoint.info.sites] == ["encoder.self", "decoder.self", "decoder.cross"]
        assert checkpoint.load_model().config.decoder is not None


def test_progress_is_plain_lines_where_nobody_watches(cli: Cli, tmp_path):
    done = cli("train", "--task", "copy", "--steps", 40, *SMALL, "--out", tmp_path / "run")
    lines = done.err.splitlines()
    assert len(lines) == 20
    assert lines[0].startswith("step 2 of 40, loss ") and "learning rate" in lines[0] and "tokens/s" in lines[0]
    assert lines[-1].startswith("step 40 of 40, ")


def test_each_save_that_fails_on_the_way_is_told_and_the_one_that_does_not(cli: Cli, tmp_path, monkeypatch):
    refusals = iter([OSError(errno.ENOSPC, "No space left on device")] * 2)
    write = native.write_weights

    def refuse_twice(*arguments: Any) -> None:
        for error in refusals:
            raise error
        write(*arguments)

    monkeypatch.setattr(native, "write_weights", refuse_twice)
    done = cli("train", "--task", "copy", "--steps", 10, "--save-every", 2, *SMALL, "--out", tmp_path / "run")
    told = [line for line in done.err.splitlines() if "loss" not in line]
    assert done.status == 0, done.err
    assert [line.split(" in ")[0] for line in told] == [
        "Step 2 could not be saved",
        "Step 4 could not be saved",
        "step 6 is saved",
    ]


def test_every_argument_reaches_the_settings(cli: Cli, tmp_path):
    given = {
        "length": 6,
        "d_model": 12,
        "n_layers": 1,
        "n_heads": 3,
        "d_hidden": 20,
        "norm": "post",
        "positions": "learned",
        "dropout": 0.1,
        "initialization": "gpt2",
        "steps": 4,
        "batch": 3,
        "schedule": "cosine",
        "warmup": 2,
        "peak_learning_rate": 0.01,
        "weight_decay": 0.5,
        "clip": None,
        "precision": "bf16",
        "seed": 7,
        "save_every": 2,
        "threads": 1,
    }
    flags = {"n_layers": "--layers", "n_heads": "--heads"}
    arguments: list[object] = []
    for name, value in given.items():
        arguments += [flags.get(name, f"--{name.replace('_', '-')}"), "none" if value is None else value]
    done = cli("train", "--task", "sort", *arguments, "--out", tmp_path / "run")
    assert done.status == 0, done.err
    saved = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["settings"]
    assert {name: saved[name] for name in given} == given


def test_a_short_run_warms_up_for_a_tenth_of_it(cli: Cli, tmp_path):
    cli("train", "--task", "copy", "--steps", 30, *SMALL, "--out", tmp_path / "run")
    saved = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["settings"]
    assert saved["warmup"] == 3 < TrainingSettings.warmup


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task", "copy", "--heads", 7), "--heads is 7: --d-model, 64, must be"),
        (("--task", "copy", "--peak-learning-rate", -1), "--peak-learning-rate is -1"),
        (("--task", "copy", "--steps", 0), "--steps is 0"),
        (("--task", "language_model"), "--text is missing: language_model learns"),
        (("--task", "language_model", "--text", "none.txt"), "none.txt"),
        (("--task", "copy", "--device", "tpu"), "device is 'tpu'"),
        (("--task", "fly"), "invalid choice: 'fly'"),
    ],
)
def test_settings_that_cannot_be_met_are_one_line(cli: Cli, tmp_path, arguments, message):
    done = cli("train", *arguments, "--out", tmp_path / "run")
    assert done.status == 2 and done.err.count("\n") == 1 and message in done.err
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_taken_is_left_alone(cli: Cli, tmp_path):
    (tmp_path / "precious").write_text("mine")
    done = cli("train", "--task", "copy", "--steps", 5, *SMALL, "--out", tmp_path)
    assert done.status == 2 and "choose another folder" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_language_model_learns_from_a_text_file(cli: Cli, tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat. " * 40, encoding="utf-8")
    arguments = ("--task", "language_model", "--text", tmp_path / "text.txt", "--steps", 5)
    assert cli("train", *arguments, *SMALL, "--out", tmp_path / "run").status == 0
    with open_checkpoint(tmp_path / "run") as checkpoint:
        tokens = checkpoint.encode("the cat").tokens
        assert tokens and "".join(tokens.texts) == "the cat"


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_training_saves_it_and_says_where(process, tmp_path, sent, status):
    running = process("train", "--task", "copy", "--steps", 10000, *SMALL, "--out", tmp_path / "run")
    with running:
        first = running.stderr.readline()
        assert first.startswith("step 500 of 10000"), first
        running.send_signal(sent)
        out, err = running.communicate(timeout=120)
    assert running.returncode == status
    assert out.startswith(f"{tmp_path / 'run'}: stopped and saved after step ")
    assert "stopping after this update" in err and "Traceback" not in err
    with open_checkpoint(tmp_path / "run") as checkpoint:
        assert checkpoint.load_model() is not None
