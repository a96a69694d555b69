import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_model.errors import TrainingError
from core_model.training.data import IGNORED, N_HELD_OUT
from core_model.training.tasks import TASKS
from core_model.training.text_data import HELD_OUT_SHARE, read_characters

SYMBOL_TASKS = [name for name, task in TASKS.items() if not task.needs_text]
ANSWERS = {"copy": lambda text: text, "reverse": lambda text: text[::-1], "sort": lambda text: "".join(sorted(text))}


@pytest.fixture
def generator():
    return np.random.default_rng(0)


def symbols(name: str, length: int = 9, seed: int = 0) -> Any:
    return TASKS[name].make_data(length, seed, None)


@pytest.mark.parametrize("name", SYMBOL_TASKS)
def test_targets_are_the_answer_followed_by_the_end(name, generator):
    data = symbols(name)
    batch = data.batch(generator, 16)
    for ids, targets in zip(batch.ids_BN, batch.targets, strict=True):
        question = data.tokenizer.decode(ids).split("|")[0]
        asked = targets[targets != IGNORED]
        assert data.tokenizer.decode(asked) == ANSWERS[name](question)
        assert asked[-1] == data.special.end


@pytest.mark.parametrize("name", ["reverse", "sort"])
def test_decoder_is_fed_the_targets_one_position_later(name, generator):
    data = symbols(name)
    batch = data.batch(generator, 16)
    assert (batch.decoder_ids_BM[:, 0] == data.special.decoder_start).all()
    fed, asked = batch.decoder_ids_BM[:, 1:], batch.targets[:, :-1]
    is_fed = fed != data.special.padding
    assert (fed[is_fed] == asked[is_fed]).all()


def test_copy_asks_for_nothing_before_the_bar(generator):
    data = symbols("copy")
    batch = data.batch(generator, 16)
    for ids, targets in zip(batch.ids_BN, batch.targets, strict=True):
        bar = data.tokenizer.encode("|").ids[-1]
        assert np.flatnonzero(targets != IGNORED)[0] == np.flatnonzero(ids == bar)[0]


@pytest.mark.parametrize("name", SYMBOL_TASKS)
def test_key_mask_is_false_exactly_at_padding(name, generator):
    data = symbols(name)
    batch = data.batch(generator, 32)
    assert len({int(row.sum()) for row in batch.key_mask_BN}) > 1
    assert (batch.key_mask_BN == (batch.ids_BN != data.special.padding)).all()


@pytest.mark.parametrize("name", SYMBOL_TASKS)
def test_text_of_an_example_is_encoded_to_what_training_feeds(name):
    data = symbols(name)
    text = data.tokenizer.decode(data.probe.ids)
    assert data.tokenizer.encode(text).ids == data.probe.ids


@pytest.mark.parametrize("name", SYMBOL_TASKS)
def test_no_input_is_longer_than_max_length(name, generator):
    data = symbols(name, length=6)
    batch = data.batch(generator, 200)
    assert batch.ids_BN.shape[1] == data.max_length
    assert batch.decoder_ids_BM is None or batch.decoder_ids_BM.shape[1] == data.max_length


@pytest.mark.parametrize("name", SYMBOL_TASKS)
def test_same_seed_draws_the_same_batches_and_another_seed_others(name):
    draws = [symbols(name).batch(np.random.default_rng(seed), 8).ids_BN.tobytes() for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_held_out_examples_are_never_trained_on(generator):
    data = symbols("reverse", length=4)
    data.tokenizer.encode("abcd")
    held_out = {row.tobytes() for row in data.held_out.ids_BN}
    assert len(data.held_out.ids_BN) == N_HELD_OUT
    drawn = (row.tobytes() for _ in range(40) for row in data.batch(generator, 500).ids_BN)
    assert held_out.isdisjoint(drawn)


def characters(path: Path, length: int) -> Any:
    return TASKS["language_model"].make_data(length, 0, path)


@pytest.fixture
def write_text(tmp_path):
    def write(text, encoding="utf-8"):
        path = tmp_path / "corpus.txt"
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_language_model_predicts_each_next_character(write_text, generator):
    text = "der Fluß fließt — 🙂 und fließt. " * 8
    data = characters(write_text(text), 10)
    batch = data.batch(generator, 5)
    assert (batch.ids_BN[:, 1:] == batch.targets[:, :-1]).all()
    for ids in batch.ids_BN:
        assert data.tokenizer.decode(ids) in text
        assert data.tokenizer.encode(data.tokenizer.decode(ids)).ids == tuple(ids)


def test_language_model_never_trains_on_the_end_of_the_text(write_text, generator):
    data = characters(write_text("a" * 90 + "b" * 10), 7)
    batch = data.batch(generator, 1000)
    assert set(data.tokenizer.decode(np.unique(batch.targets))) == {"a"}
    assert "b" in data.tokenizer.decode(np.unique(data.held_out.targets))


def test_text_too_short_is_refused_with_the_length_needed(write_text):
    with pytest.raises(TrainingError, match=r"corpus\.txt has 21 tokens.*at least 22"):
        TASKS["language_model"].make_data(10, 0, write_text("x" * 21))
    TASKS["language_model"].make_data(10, 0, write_text("x" * 22))


def test_text_that_is_not_utf8_is_refused_with_the_offset(write_text):
    with pytest.raises(TrainingError, match="0xFC at offset 1"):
        TASKS["language_model"].make_data(10, 0, write_text("für", encoding="latin-1"))


def test_missing_text_is_refused_by_name(tmp_path):
    with pytest.raises(TrainingError, match=r"gone\.txt cannot be read"):
        TASKS["language_model"].make_data(10, 0, tmp_path / "gone.txt")


def test_language_model_without_text_says_what_to_do():
    with pytest.raises(TrainingError, match="choose a text file"):
        TASKS["language_model"].make_data(10, 0, None)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(TrainingError, match=f"{path.name} is not a regular file: .*; choose another file"):
            characters(path, 4)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_text_is_read_back_as_it_was_learned_however_its_lines_end(write_text, end):
    lines = "the cat\nsat on\nthe mat\n"
    data = characters(write_text(lines.replace("\n", end) * 8), 8)
    read = data.tokenizer.encode(lines.replace("\n", end))
    assert read.ids == data.tokenizer.encode(lines).ids and data.tokenizer.decode(read.ids) == lines
    assert read.offsets[7:9] == ((7, 7 + len(end)), (7 + len(end), 8 + len(end)))


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\ufeff"), min_size=40))
def test_tokens_of_a_text_are_its_characters_in_any_script(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_text(text, encoding="utf-8", newline="")
    data = read_characters(path, length=4)
    n_held_out = max(int(len(text) * HELD_OUT_SHARE), 5)
    assert data.tokenizer.decode(data.probe.ids) == text[-n_held_out:][:4]
    assert data.tokenizer.vocab_size == len(set(text))
