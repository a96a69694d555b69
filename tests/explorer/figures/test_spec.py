from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from explorer.figures.files import ExportError
from explorer.figures.spec import FigureOptions


def test_the_caption_names_model_family_dtype_hash_site_layer_head_scale_pooling_and_text(make_spec):
    spec = make_spec(note="maximum of 8 x 8 cells")
    caption = spec.caption.replace("\u00a0", " ")
    assert caption == (
        "tiny-lm (GPT-2, F32, header sha256 01234567) · decoder self-attention, layer 1, head 2 · "
        "attention weight, linear · maximum of 8 x 8 cells · “the cat sat”"
    )


def test_a_long_text_is_quoted_in_part(make_spec, provenance):
    spec = replace(make_spec(), provenance=replace(provenance, text="word " * 1000, target="ein\nZiel"))
    quoted = spec.caption.rpartition("· ")[2]
    assert len(quoted) < 150
    assert quoted.endswith("…” → “ein Ziel”")


@pytest.mark.parametrize(
    ("given", "quoted"),
    [
        ({"text": "", "file": "cat.png"}, "cat.png"),
        ({"text": "a cat", "file": "cat.png"}, "cat.png with “a cat”"),
        ({"text": "", "file": "talk.wav", "target": "hello"}, "talk.wav → “hello”"),
    ],
)
def test_a_file_that_was_given_is_named(make_spec, provenance, given, quoted):
    spec = replace(make_spec(), provenance=replace(provenance, **given))
    assert spec.caption.rpartition("· ")[2] == quoted


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"width_mm": 3}, "The width is 3 mm: choose from 30 to 1000 mm."),
        ({"dpi": 20000}, "The resolution is 20000 dpi: choose from 72 to 2400 dpi."),
        ({"font_size": 0}, "The font size is 0 pt: choose from 4 to 24 pt."),
        ({"colormap": "jet"}, "The colour map is 'jet': choose one of viridis, cividis, magma, grey, diverging."),
    ],
)
def test_a_choice_outside_its_limits_is_refused_with_the_limits(choice, message):
    with pytest.raises(ExportError) as refusal:
        FigureOptions(**choice)
    assert str(refusal.value) == message


def test_labels_are_those_of_the_part_shown_as_tokens_are_written_on_screen(make_spec):
    tokens = "the", " cat", "\n"
    spec = make_spec(values=np.zeros((2, 3)), shape=(3, 3), rows=(1, 3), row_labels=tokens, col_labels=tokens)
    assert spec.row_texts == ("·cat", "↵")
    assert spec.col_texts == ("the", "·cat", "↵")


def test_describing_a_figure_and_its_numbers_imports_neither_qt_nor_torch_nor_matplotlib():
    code = (
        "import sys, explorer.figures.spec, explorer.figures.layout, explorer.figures.data;"
        "print([m for m in ('PySide6', 'torch', 'matplotlib', 'pyqtgraph') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
