"""Pictures and sounds on the command line: what is written is what transformers computes of them."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from core_model.checkpoint import open_checkpoint
from tests.explorer.cli.conftest import Cli
from tests.explorer.foreign import COLORS_YXK, SIDE, save_models, save_picture, save_sound, vit, whisper

PLACE = ("--layer", 1, "--head", 2)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_models(tmp_path_factory.mktemp("foreign"))


def table(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    """Names of the rows, names of the columns, and the weights of a CSV; NaN where masked."""
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    return (
        [row[0] for row in rows[1:]],
        rows[0][1:],
        np.array([[float(cell or "nan") for cell in row[1:]] for row in rows[1:]]),
    )


def test_the_attention_over_a_picture_is_that_of_transformers(cli: Cli, models: Path, tmp_path: Path) -> None:
    picture, out = save_picture(tmp_path / "a.png"), tmp_path / "a.csv"
    done = cli("attention", models / "vit", "--picture", picture, *PLACE, "--out", out)
    assert done.status == 0, done.err
    model = vit()
    model.set_attn_implementation("eager")
    pixels = torch.tensor((COLORS_YXK / 255 - 0.5) / 0.5, dtype=torch.float32).permute(2, 0, 1)
    with torch.no_grad():
        want = model(pixels[None], output_attentions=True).attentions[1][0, 2].numpy()
    queries, keys, weights = table(out)
    assert queries == keys and keys[:3] == ["0:class", "1:patch 0,0", "2:patch 0,1"] and keys[-1] == "9:patch 2,2"
    np.testing.assert_allclose(weights, want, atol=2e-5)


def test_the_attention_over_a_sound_is_that_of_transformers(cli: Cli, models: Path, tmp_path: Path) -> None:
    sound, out = save_sound(tmp_path / "a.wav"), tmp_path / "a.csv"
    given = ("--sound", sound, "--target", "3 5 17", "--site", "decoder.cross")
    done = cli("attention", models / "whisper", *given, *PLACE, "--out", out)
    assert done.status == 0, done.err
    with open_checkpoint(models / "whisper") as checkpoint:
        features = checkpoint.encode(sound=sound).features
    assert features is not None
    model = whisper()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        output = model(
            torch.tensor(features)[None], decoder_input_ids=torch.tensor([[3, 5, 17]]), output_attentions=True
        )
    queries, keys, weights = table(out)
    assert (queries, keys[:2], keys[-1]) == (["0:3", "1:5", "2:17"], ["0:0.00 s", "1:0.02 s"], "19:0.38 s")
    np.testing.assert_allclose(weights, output.cross_attentions[1][0, 2].numpy(), atol=2e-5)


@pytest.mark.parametrize(
    ("given", "site", "first"),
    [(("--text", "5 17 29"), "text tower", "0:5"), (("--picture", "a.png"), "vision tower", "0:class")],
)
def test_of_two_towers_the_one_that_was_given_something_is_written(
    cli: Cli, models: Path, tmp_path: Path, given: tuple[str, str], site: str, first: str
) -> None:
    save_picture(tmp_path / "a.png")
    option, value = given
    value = tmp_path / value if option == "--picture" else value
    done = cli("attention", models / "clip", option, value, *PLACE, "--out", tmp_path / "a.csv")
    assert done.status == 0 and site in done.out, done.err
    assert table(tmp_path / "a.csv")[1][0] == first


def test_a_figure_names_the_picture(cli: Cli, models: Path, tmp_path: Path) -> None:
    picture, out = save_picture(tmp_path / "a cat.png"), tmp_path / "a.svg"
    assert cli("attention", models / "vit", "--picture", picture, *PLACE, "--out", out).status == 0
    text = out.read_text(encoding="utf-8")
    assert "a cat.png" in text and "patch 2,2" in text


def test_what_was_done_to_a_picture_is_said_once(cli: Cli, models: Path, tmp_path: Path) -> None:
    Image.new("RGB", (SIDE * 2, SIDE), "red").save(tmp_path / "wide.png")
    done = cli("attention", models / "vit", "--picture", tmp_path / "wide.png", *PLACE, "--out", tmp_path / "a.csv")
    assert done.status == 0
    assert done.err == "wide.png: resized from 24 x 12 to 12 x 12 pixels\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "There is nothing to read: vit reads --picture."),
        (("--text", "a cat"), "--text was given, but vit reads --picture."),
        (("--sound", "a.wav"), "--sound was given, but vit reads --picture."),
        (("--picture", "none.png"), "none.png cannot be read (No such file or directory): check the path"),
    ],
)
def test_what_the_model_does_not_read_is_one_line(
    cli: Cli, models: Path, tmp_path: Path, given: tuple[str, ...], message: str
) -> None:
    done = cli("attention", models / "vit", *given, *PLACE, "--out", tmp_path / "a.csv")
    assert done.status == 2 and done.err.count("\n") == 1 and message in done.err
    assert not list(tmp_path.iterdir())
