"""The bundled samples show what their manifest says; the figures are measured here anew."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core_model.analysis.head_statistics import head_statistics
from core_model.analysis.induction import induction_scores
from core_model.checkpoint import Checkpoint, open_checkpoint
from core_model.nn.transformer import Transformer
from core_model.trace import Trace, run_trace

SAMPLES = Path(__file__).parents[3] / "resources" / "samples"
ENTRIES = json.loads((SAMPLES / "manifest.json").read_text())["samples"]
INDUCTION, PREVIOUS, REVERSAL = ENTRIES


@pytest.fixture(params=sorted({entry["folder"] for entry in ENTRIES}))
def folder(request):
    return SAMPLES / request.param


def traced(entry: dict) -> tuple[Checkpoint, Transformer, Trace]:
    with open_checkpoint(SAMPLES / entry["folder"]) as checkpoint:
        model = checkpoint.load_model()
        return checkpoint, model, run_trace(model, checkpoint.encode(entry["text"], target=entry.get("target")))


def test_a_sample_has_less_than_two_megabytes(folder):
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000


def test_a_sample_opens_without_a_warning(folder):
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.refusal is None and checkpoint.info.warnings == ()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["title"])
def test_the_head_worth_seeing_is_there(entry):
    _, _, trace = traced(entry)
    n_layers, n_heads, _, _ = trace.shape(entry["site"])
    assert 0 <= entry["layer"] < n_layers and 0 <= entry["head"] < n_heads


def test_the_previous_token_head_looks_one_token_back():
    _, _, trace = traced(PREVIOUS)
    assert PREVIOUS["layer"] == 0
    previous = head_statistics(trace, "decoder.self").previous_token
    assert previous is not None and previous[0, PREVIOUS["head"]] > 0.8


def test_the_induction_head_finds_what_followed_in_random_and_in_written_text():
    checkpoint, model, trace = traced(INDUCTION)
    layer, head = INDUCTION["layer"], INDUCTION["head"]
    assert layer == 1 and induction_scores(model)[layer, head] > 0.5
    tokens = checkpoint.encode(INDUCTION["text"]).tokens
    assert tokens is not None
    phrase = [" keeper", " wound", " the", " clock", " and", " lit", " the"]
    starts = [i for i in range(len(tokens)) if list(tokens.texts[i : i + len(phrase)]) == phrase]
    first, second = starts
    weights = trace.attention("decoder.self", layer, head)
    assert np.mean([weights[second + i, first + i + 1] for i in range(1, len(phrase))]) > 0.4


def test_the_reversal_reads_the_letter_it_is_to_write():
    checkpoint, _, trace = traced(REVERSAL)
    n = len(REVERSAL["text"])
    weights = trace.attention("decoder.cross", REVERSAL["layer"], REVERSAL["head"])
    assert np.mean([weights[row, n - 1 - row] for row in range(n)]) > 0.7
    assert trace.logits is not None and checkpoint.tokenizer is not None
    assert checkpoint.tokenizer.decode(trace.logits.argmax(-1).tolist()) == REVERSAL["text"][::-1]
