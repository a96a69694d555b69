"""What can be exported of the matrix on screen, and what the choices make of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from explorer.figures.export import ExportSource, export_source, part_on_screen
from explorer.figures.files import ExportError
from explorer.figures.queries import FigureQuery, TableQuery
from explorer.state.app_state import AppState, Viewport
from explorer.state.export import ExportChoices
from explorer.state.queries import traced
from explorer.viewmodels.records import HeatmapPicture
from tests.explorer.states import traced_state


@pytest.fixture
def whole(make_spec) -> HeatmapPicture:
    picture = make_spec(tuple("abcdef")).picture
    return replace(picture, weights=picture.values)


@pytest.fixture
def source(make_spec, provenance, whole) -> ExportSource:
    trace = traced(traced_state())
    assert trace
    part = part_on_screen(whole, (1, 4), (0, 2))
    return ExportSource(whole=whole, on_screen=part, provenance=provenance, trace=trace)


def test_the_part_on_screen_is_cut_from_the_exact_picture(whole):
    part = part_on_screen(whole, (1, 4), (0, 2))
    assert (part.rows, part.cols) == ((1, 4), (0, 2))
    assert np.array_equal(part.values, whole.values[1:4, 0:2])
    assert part.masked is not None and np.array_equal(part.masked, whole.masked[1:4, 0:2])
    assert part.row_labels == whole.row_labels


def test_a_pooled_picture_cannot_be_cut(make_spec):
    pooled = make_spec(values=np.zeros((4, 4)), shape=(40, 40), rows=(0, 40), cols=(0, 40), cells=(10, 10)).picture
    assert part_on_screen(pooled, (3, 9), (3, 9)) is pooled


def test_the_source_names_the_head_and_the_text_of_the_state(whole):
    state = traced_state(viewport=Viewport(rows=(2, 6), cols=(0, 6), size=(100, 100)))
    source = export_source(state, whole, None)
    assert source
    assert (source.provenance.site, source.provenance.layer, source.provenance.head) == ("decoder.self", 0, 0)
    assert (source.provenance.model, source.provenance.text) == ("tiny", "the cat sat")
    assert source.on_screen.rows == (2, 6)


def test_an_exact_part_laid_over_the_picture_is_what_is_on_screen(whole):
    tile = part_on_screen(whole, (0, 2), (0, 2))
    source = export_source(traced_state(), whole, tile)
    assert source and source.on_screen is tile


def test_there_is_no_source_before_the_model_was_run(whole):
    assert export_source(AppState(), whole, None) is None


def test_choices_make_a_figure_of_the_part_they_name(source):
    assert source.spec(ExportChoices(whole=True)).picture is source.whole
    spec = source.spec(ExportChoices(whole=False, width_mm=114, labels=False, colormap="grey"))
    assert spec.picture is source.on_screen
    assert (spec.options.width_mm, spec.options.labels, spec.colormap) == (114, False, "grey")


def test_the_ending_of_the_name_decides_between_figure_and_numbers(source):
    choices = ExportChoices(format="svg", whole=False)
    figure = source.query(choices, Path("a.pdf"))
    assert isinstance(figure, FigureQuery) and figure.path == Path("a.pdf")
    table = source.query(choices, Path("a.csv"))
    assert isinstance(table, TableQuery) and (table.rows, table.cols) == ((1, 4), (0, 2))
    with pytest.raises(ExportError, match=r"'a.doc' ends in '.doc'"):
        source.query(choices, Path("a.doc"))


def test_the_summary_says_how_much_and_for_numbers_how_large(source):
    assert source.summary(ExportChoices(format="pdf")) == "6 queries x 6 keys"
    assert source.summary(ExportChoices(format="csv")) == "6 queries x 6 keys, about 432 B"
    assert source.summary(ExportChoices(format="png", whole=False)) == "3 queries x 2 keys, from query 1 and key 0"


def test_the_suggested_name_is_one_that_any_file_system_takes(source):
    strange = replace(source, provenance=replace(source.provenance, model="a/b: c*?"))
    assert strange.file_name(ExportChoices(format="npz")) == "a-b-c-decoder.self-L1-H2.npz"
    long = replace(source, provenance=replace(source.provenance, model="a" * 255))
    assert len(long.file_name(ExportChoices(format="npz"))) < 128


def test_the_glimpse_of_a_csv_is_its_beginning(source):
    lines = source.glimpse(ExportChoices(format="csv")).splitlines()
    assert lines[0].startswith("query (rows) \\ key (columns),0:a,1:b")
    assert lines[1] == "0:a,1.0,,,,,"
    assert len(lines) == 7


def test_the_glimpse_of_an_npz_lists_what_it_holds(source):
    text = source.glimpse(ExportChoices(format="npz", whole=False))
    assert "attention     float32 [3, 2]" in text
    assert "header_sha256 0123456789abcdef" in text
