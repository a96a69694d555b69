"""screenshot, each in a process of its own: it makes Qt's application anew."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from explorer.panels.registry import PANELS
from tests.explorer.cli.conftest import ROOT
from tests.explorer.models import save_picture_encoder


@pytest.fixture
def screenshot(process):
    """Run the verb; (status, stdout, stderr)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        done = process("screenshot", *arguments)
        out, err = done.communicate(timeout=180)
        return done.returncode, out, err

    return run


def test_the_window_is_drawn_with_the_head_asked_for_at_the_size_asked_for(screenshot, decoder, tmp_path):
    arguments = ("--open", decoder, "--text", "a cat sat.", "--layer", 1, "--head", 2, "--panel", "attention")
    status, out, err = screenshot(*arguments, "--size", "1000x700", "--scale", 2, "--out", tmp_path / "w.png")
    assert (status, err) == (0, "")
    assert out == f"{tmp_path / 'w.png'}: 1000 x 700 at scale 2\n"
    image = Image.open(tmp_path / "w.png").convert("RGB")
    assert image.size == (2000, 1400)
    colors = {tuple(color) for color in np.asarray(image)[200:, 400:].reshape(-1, 3)}
    assert (68, 1, 84) in colors  # the dark end of viridis: the matrix is drawn


def test_dark_is_dark_and_nothing_is_remembered(screenshot, decoder, tmp_path, user_folders):
    status, _, err = screenshot(
        "--open", decoder, "--text", "abc", "--theme", "dark", "--size", "900x600", "--out", tmp_path / "w.png"
    )
    assert (status, err) == (0, "")
    assert np.asarray(Image.open(tmp_path / "w.png").convert("L")).mean() < 80
    assert not list(user_folders.rglob("*.json"))


def test_each_layout_is_a_picture_of_its_own(screenshot, decoder, tmp_path):
    pictures = []
    for layout in ("explore", "train", "learn"):
        status, _, _ = screenshot("--open", decoder, "--text", "abc", "--layout", layout, "--out", tmp_path / "w.png")
        assert status == 0
        pictures.append((tmp_path / "w.png").read_bytes())
    assert len(set(pictures)) == 3


def test_a_cell_can_be_locked_and_a_short_training_be_shown(screenshot, tmp_path):
    status, out, err = screenshot(
        *("--cell", "15,2", "--layout", "train", "--train-steps", 3, "--out", tmp_path / "w.png")
    )
    assert (status, err) == (0, "") and out.startswith(str(tmp_path / "w.png"))
    assert [path.name for path in tmp_path.iterdir()] == ["w.png"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--text", "The cat", "--cell", "15,2"), "There is no cell 15,2 in the matrix shown."),
        (("--layer", 7), "There is no decoder.self layer 7 head 0 in this model"),
        (("--picture", "cat.png"), "--picture was given, but tiny-language-model reads --text."),
    ],
)
def test_the_sample_is_given_what_the_command_gives(screenshot, tmp_path, given, message):
    status, _, err = screenshot(*given, "--out", tmp_path / "w.png")
    assert status == 2 and message in err


def test_a_text_for_a_model_that_reads_ids_is_refused_not_dropped(screenshot, tmp_path):
    from tests.core_model.checkpoint import tiny

    model = tiny.write(tmp_path / "model")
    status, _, err = screenshot("--open", model, "--text", "a cat", "--out", tmp_path / "w.png")
    assert status == 2 and err.count("\n") == 1
    assert 'has no usable tokenizer: give --text token ids, like "5 17 2".' in err


@pytest.mark.parametrize(
    ("given", "status", "message"),
    [
        (("--picture", "a.png", "--cell", "3,4"), 0, ""),
        (("--picture", "broken.png"), 2, "The picture cannot be read: broken.png is no picture"),
        (("--text", "5 17"), 2, "--text was given, but pixels reads --picture."),
    ],
)
def test_a_picture_is_shown_to_a_model_that_reads_it(screenshot, tmp_path, given, status, message):
    model = save_picture_encoder(tmp_path / "pixels")
    Image.new("RGB", (8, 8), "red").save(tmp_path / "a.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    found = [tmp_path / word if word.endswith(".png") else word for word in given]
    done, _, err = screenshot("--open", model, *found, "--size", "1000x700", "--out", tmp_path / "w.png")
    assert done == status and message in err and (tmp_path / "w.png").exists() == (status == 0)


def test_a_fault_of_the_program_is_told_with_where_it_happened_and_status_1(decoder, tmp_path):
    code = (
        "import sys; from explorer.workers import answers; from explorer.state.queries import HeadsQuery\n"
        "def broken(*given): raise RuntimeError('a wheel came off')\n"
        "answers.ANSWERS[HeadsQuery] = broken\n"
        "from explorer.cli import main; sys.exit(main())"
    )
    arguments = ["screenshot", "--open", decoder, "--text", "abc", "--out", tmp_path / "w.png"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=180
    )
    assert done.returncode == 1 and "a wheel came off" in done.stderr and "in broken" in done.stderr


def test_the_help_names_every_panel_that_can_be_brought_to_the_front(screenshot):
    status, out, _ = screenshot("--help")
    words = " ".join(out.split()).replace(",", "").split()
    assert status == 0 and {"attention", *(spec.key for spec in PANELS if not spec.inside)} <= set(words)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--head", 99), "There is no decoder.self layer 0 head 99 in this model"),
        (("--panel", "ghost"), "There is no panel 'ghost': choose one of attention, "),
        (("--open", "/none"), "none"),
        (("--cell", "99,0"), "There is no cell 99,0 in the matrix shown."),
        (("--cell", "1"), "'1' is not a cell like 5,3"),
        (("--scale", 9), "The scale is 9: choose from 0.5 to 4."),
        (("--size", "1x1"), "The window cannot be 1x1: choose a --size of 800x600"),
        (("--patience", "nan"), "The patience is nan s: choose more than 0."),
    ],
)
def test_what_cannot_be_shown_is_one_line_and_no_picture(screenshot, decoder, tmp_path, arguments, message):
    status, _, err = screenshot("--open", decoder, "--text", "abc", *arguments, "--out", tmp_path / "w.png")
    assert status == 2 and err.count("\n") == 1 and message in err
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_it_without_a_picture(process, tmp_path):
    with process("screenshot", "--open", tmp_path, "--out", tmp_path / "w.png", QT_LOGGING_RULES="*=true") as running:
        running.stderr.readline()  # Qt has started
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert running.returncode == -signal.SIGINT and "Traceback" not in err
    assert not list(tmp_path.iterdir())
