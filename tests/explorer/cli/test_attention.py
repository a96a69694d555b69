"""attention: the numbers are those of transformers, and every format holds them."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import numpy as np
import pytest

from explorer.figures.data import CORNER
from tests.explorer.cli.conftest import Cli

IDS = (5, 17, 2, 9, 17, 2, 40)


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny seeded GPT-2 as transformers saves it, without a tokenizer."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=4, initializer_range=0.5)
    folder = tmp_path_factory.mktemp("gpt2")
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def reference(gpt2: Path) -> np.ndarray:
    """Eager attention of transformers: [layers, heads, queries, keys]."""
    import torch
    from transformers import GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(gpt2, attn_implementation="eager").eval()
    with torch.no_grad():
        attentions = model(torch.tensor([IDS]), output_attentions=True).attentions
    return torch.cat(attentions).numpy()


def write(cli: Cli, path: Path, out: Path, *more: object, layer: int = 1, head: int = 2):
    text = " ".join(map(str, IDS))
    return cli("attention", path, "--text", text, "--layer", layer, "--head", head, "--out", out, *more)


def test_the_csv_holds_the_attention_that_transformers_computes(cli: Cli, gpt2, reference, tmp_path):
    for layer in range(2):
        for head in range(4):
            done = write(cli, gpt2, tmp_path / "a.csv", layer=layer, head=head)
            assert done.status == 0, done.err
            rows = list(csv.reader(io.StringIO((tmp_path / "a.csv").read_text(encoding="utf-8"), newline="")))
            assert rows[0] == [CORNER, *(f"{index}:{token}" for index, token in enumerate(IDS))]
            found = np.array([[float(cell or "nan") for cell in row[1:]] for row in rows[1:]])
            assert np.array_equal(np.isnan(found), np.triu(np.ones(found.shape, dtype=bool), 1))
            assert np.abs(np.nan_to_num(found) - reference[layer, head]).max() < 2e-5


def test_the_npz_holds_the_same_and_says_where_it_comes_from(cli: Cli, gpt2, reference, tmp_path):
    assert write(cli, gpt2, tmp_path / "a.npz").status == 0
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert np.abs(archive["attention"] - reference[1, 2]).max() < 2e-5
        assert archive["query_tokens"].tolist() == [str(token) for token in IDS]
        assert (archive["site"].item(), archive["layer"].item(), archive["head"].item()) == ("decoder.self", 1, 2)
        assert archive["model"].item() == gpt2.name and len(archive["header_sha256"].item()) == 64


def test_a_range_of_queries_and_keys_can_be_written_alone(cli: Cli, gpt2, reference, tmp_path):
    assert write(cli, gpt2, tmp_path / "a.npz", "--rows", "2:6", "--cols", "0:3").status == 0
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert np.abs(archive["attention"] - reference[1, 2, 2:6, 0:3]).max() < 2e-5
        assert (archive["query_start"].item(), archive["key_start"].item()) == (2, 0)


@pytest.mark.parametrize("name", ["a.svg", "a.pdf", "a.png"])
def test_figures_of_every_format_are_written(cli: Cli, gpt2, tmp_path, name):
    done = write(cli, gpt2, tmp_path / name, "--width-mm", 114, "--scale", "row_max", "--colormap", "cividis")
    assert done.status == 0, done.err
    assert done.out == f"{tmp_path / name}: decoder self-attention, layer 1, head 2\n"
    assert (tmp_path / name).stat().st_size > 1000


def test_the_figure_says_what_it_shows(cli: Cli, gpt2, tmp_path):
    write(cli, gpt2, tmp_path / "a.svg", "--width-mm", 174)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "decoder self-attention, layer 1, head 2" in text and "exact cells" in text and ">17<" in text
    write(cli, gpt2, tmp_path / "b.svg", "--no-caption", "--no-labels")
    plain = (tmp_path / "b.svg").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "head 2 ·" not in plain.partition("<defs>")[2] and ">17<" not in plain


def test_cross_attention_reads_the_target_and_says_which_side_is_which(cli: Cli, translator, tmp_path):
    arguments = ("--text", "abc", "--target", "cba", "--site", "decoder.cross", "--layer", 0, "--head", 1)
    done = cli("attention", translator, *arguments, "--out", tmp_path / "a.svg")
    assert done.status == 0, done.err
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "token the decoder reads" in text and "token the encoder reads" in text


def test_a_text_is_read_from_standard_input(cli: Cli, decoder, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"abc")))
    done = cli("attention", decoder, "--text", "-", "--layer", 0, "--head", 0, "--out", tmp_path / "a.npz")
    assert done.status == 0, done.err
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert "".join(archive["key_tokens"]) == "abc"


def test_input_that_is_no_text_is_named_by_its_first_wrong_byte(cli: Cli, decoder, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"abc\xff")))
    done = cli("attention", decoder, "--text", "-", "--layer", 0, "--head", 0, "--out", tmp_path / "a.npz")
    assert done.status == 2
    assert "Standard input is not UTF-8 text (byte 0xff at offset 3)" in done.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--layer", 9), "layer is 9: decoder.self has layers 0 to 1"),
        (("--head", 9), "head is 9: decoder.self has heads 0 to 3"),
        (("--site", "encoder.self"), "site is 'encoder.self': this model has decoder.self"),
        (("--rows", "0:99"), "--rows is 0:99, and there are 7 rows: give a range within 0:7"),
        (("--cols", "2:8"), "--cols is 2:8, and there are 7 cols: give a range within 0:7"),
        (("--width-mm", 2), "The width is 2 mm: choose from 30 to 1000 mm."),
        (("--out", "a.jpg"), "'a.jpg' ends in '.jpg': give it one of .svg, .pdf, .png, .csv, .npz."),
        (("--out", "/none/a.svg"), "Cannot write /none/a.svg: its folder does not exist"),
        (("--text", ""), "There is nothing to read: "),
        (("--picture", "cat.png"), "--picture was given, but "),
        (("--text", "5 cat"), "'cat' is not a token id"),
    ],
)
@pytest.mark.parametrize("format", ["csv", "svg"])
def test_what_cannot_be_done_is_one_line_and_leaves_no_file(cli: Cli, gpt2, tmp_path, format, more, message):
    done = write(cli, gpt2, tmp_path / f"a.{format}", *more)
    assert done.status == 2 and done.err.count("\n") == 1
    assert message in done.err
    assert not list(tmp_path.iterdir())


def test_a_tokenizer_that_cannot_be_used_is_named_where_a_text_is_refused(cli: Cli, gpt2, tmp_path):
    broken = shutil.copytree(gpt2, tmp_path / "broken")
    for folder, why in ((gpt2, "there is no tokenizer"), (broken, "tokenizer.json is empty (0 bytes)")):
        (broken / "tokenizer.json").touch()
        done = write(cli, folder, tmp_path / "a.csv", "--text", "5 cat")
        assert "'cat' is not a token id of this model (numbers from 0 to " in done.err and why in done.err


def test_a_matrix_too_large_for_single_cells_is_pooled_and_says_so(cli: Cli, gpt2, tmp_path, monkeypatch):
    monkeypatch.setattr("explorer.verbs.attention.MOST_CELLS", 4)
    done = write(cli, gpt2, tmp_path / "a.svg")
    assert done.status == 0 and "the matrix is larger than 4 x 4" in done.err and "2 x 2 cells" in done.err
    assert "2 x 2 cells" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_without_a_place_for_caches_a_figure_is_written_without_a_word(process, gpt2, tmp_path):
    out = tmp_path / "a.svg"
    place = ("--layer", 0, "--head", 0, "--out", out)
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), "/dev/null")
    done = process("attention", gpt2, "--text", "5 17", *place, **nowhere)
    assert done.communicate(timeout=120)[1] == ""
    assert done.returncode == 0 and out.is_file()
