"""The list of tensors and the picture of one, as a person reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core_model.analysis.tensor_statistics import tensor_statistics
from core_model.analysis.tensor_view import tensor_view
from core_model.pieces import HeldArray
from core_model.results import Pooling, TensorInfo
from explorer.state.app_state import AppState
from explorer.state.tensors import HeadCut, SpectrumAnswer, Subject, TensorAnswer, TensorList
from explorer.viewmodels.records import HeatmapPicture
from explorer.viewmodels.tensor_list import TensorTable, arranged, first_to_see, tensor_table, totals
from explorer.viewmodels.tensor_picture import TensorPicture, cell_text, spectrum_picture, tensor_part, tensor_picture
from tests.explorer.states import SOURCE

STATE = AppState()


def info(name: str, *shape: int, site: str | None = None, dtype: str = "float32", file: str = "a.st") -> TensorInfo:
    n_bytes = 4 * int(np.prod(shape))
    return TensorInfo(name=name, shape=shape, dtype=dtype, n_bytes=n_bytes, file=Path("/m") / file, site=site)


TENSORS = (
    info(
        "h.10.attn.weight",
        8,
        24,
        site="decoder.layers.10.attention.query.weight, decoder.layers.10.attention.key.weight",
    ),
    info("h.9.attn.weight", 8, 24, site="decoder.layers.9.attention.query.weight"),
    info("h.9.norm.weight", 8, site="decoder.layers.9.attention_residual.before.weight"),
    info("wte.weight", 100, 8, site="decoder.embedding.token.weight", file="b.st"),
    info("h.9.attn.bias", 1, 1, 4, 4, dtype="bool"),
    info("number", dtype="int64"),
)


def table() -> TensorTable:
    return tensor_table(TensorList(source=SOURCE, tensors=TENSORS), STATE)


def shown(**options: Any) -> list[tuple[str, list[str]]]:
    whole = table()
    return [(group.title, [whole.rows[n].name for n in group.rows]) for group in arranged(whole, **options)]


def test_tensors_stand_under_their_layers_in_the_order_of_the_numbers():
    assert shown() == [
        ("decoder", ["wte.weight"]),
        ("decoder layer 9", ["h.9.attn.weight", "h.9.norm.weight"]),
        ("decoder layer 10", ["h.10.attn.weight"]),
        ("h.9", ["h.9.attn.bias"]),
        ("others", ["number"]),
    ]


def test_the_same_role_of_all_layers_stands_together():
    groups = dict(shown(grouping="role"))
    assert groups["attention.query.weight, attention.key.weight"] == ["h.10.attn.weight"]
    assert groups["attention.query.weight"] == ["h.9.attn.weight"]
    assert groups["attn.bias"] == ["h.9.attn.bias"]


def test_what_all_names_of_a_group_begin_with_is_known():
    assert [group.prefix for group in arranged(table())] == ["", "h.9.", "", "", ""]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("norm", ["h.9.norm.weight"]),
        ("QUERY h.9", ["h.9.attn.weight"]),
        ("b.st", ["wte.weight"]),
        ("bool", ["h.9.attn.bias"]),
        ("nothing has this", []),
    ],
)
def test_a_filter_looks_for_every_word_in_name_role_type_and_file(words: str, names: list[str]):
    assert shown(words=words, grouping="none") == [("", names)]


def test_a_column_sorts_by_what_it_means_and_not_by_its_text():
    ((_, names),) = shown(grouping="none", column="size", is_falling=True)
    assert names[0] == "wte.weight" and names[-1] == "number"
    ((_, names),) = shown(grouping="none", column="name")
    assert names.index("h.9.norm.weight") < names.index("h.10.attn.weight")


def test_totals_count_what_is_shown():
    whole = table()
    n_numbers = 2 * 8 * 24 + 8 + 100 * 8 + 4 * 4 + 1
    expected = f"6 tensors, {n_numbers / 1000:.3g} thousand numbers, {4 * n_numbers / 1024:.3g} KiB, 2 files"
    assert totals(whole, arranged(whole)) == expected
    assert totals(whole, arranged(whole, words="norm")) == "1 tensor of 6, 8 numbers, 32 B, 1 file"


def test_the_first_matrix_of_numbers_is_seen_first():
    whole = table()
    assert first_to_see(whole, arranged(whole)) == "wte.weight"
    assert first_to_see(whole, arranged(whole, words="int64")) == "number"
    assert first_to_see(TensorTable(rows=()), ()) is None


def answer(values: np.ndarray, subject: Subject = "w", pooling: Pooling = "extreme", size: int = 64) -> TensorAnswer:
    tensor = HeldArray(values)
    return TensorAnswer(
        subject=subject,
        info=info("w", *values.shape) if isinstance(subject, str) else None,
        shape=values.shape,
        statistics=tensor_statistics(tensor),
        view=tensor_view(tensor, size=(size, size), pooling=pooling),
    )


def fact(picture: TensorPicture, name: str) -> str:
    return next(row.value for section in picture.facts.sections for row in section.rows if row.name == name)


def matrix_of(picture: TensorPicture) -> HeatmapPicture:
    assert picture.matrix is not None
    return picture.matrix


def test_colours_are_symmetrical_about_zero():
    matrix = matrix_of(tensor_picture(answer(np.array([[0.5, -2.0], [0.0, 1.0]])), STATE))
    assert matrix.levels == (-2.0, 2.0) and matrix.colormap == "diverging"
    assert matrix.note == "exact"


def test_a_pooled_picture_says_how_it_pooled_and_a_part_keeps_its_colours():
    values = np.random.default_rng(0).normal(size=(100, 40))
    whole = tensor_picture(answer(values, pooling="mean", size=10), STATE)
    assert matrix_of(whole).note == "mean of up to 10 \u00d7 4"
    assert cell_text(matrix_of(whole), 99, 39).endswith("(mean of its block)")
    view = tensor_view(HeldArray(values), rows=(0, 5), cols=(0, 5), size=(10, 10), pooling="mean")
    assert view is not None
    part = matrix_of(tensor_part(view, whole, STATE))
    assert (part.levels, part.identity) == (matrix_of(whole).levels, matrix_of(whole).identity)
    beyond = (np.abs(values[:5, :5].astype(np.float32)) > matrix_of(whole).levels[1]).sum()
    assert beyond and part.note.startswith(f"exact; {beyond} beyond the colours")


def test_what_is_not_finite_is_marked_and_counted():
    picture = tensor_picture(answer(np.array([[np.nan, 1.0], [np.inf, 0.0]])), STATE)
    missing = matrix_of(picture).missing
    assert missing is not None and missing.tolist() == [[True, False], [True, False]]
    assert (fact(picture, "NaN"), fact(picture, "infinite")) == ("1 (25 %)", "1 (25 %)")
    assert fact(picture, "zeros") == "1 (25 %)"
    assert cell_text(matrix_of(picture), 0, 0) == "row 0, column 0: not finite"
    assert cell_text(matrix_of(picture), 0, 1) == "row 0, column 1: 1"
    assert cell_text(matrix_of(picture), 5, 1) == ""


def test_a_histogram_counts_every_finite_number_between_its_edges():
    values = np.random.default_rng(0).normal(size=500)
    histogram = tensor_picture(answer(values), STATE).histogram
    assert histogram is not None
    (steps,) = histogram.series
    assert np.nansum(steps.y[::2]) == 500
    assert (steps.x[0], steps.x[-1]) == (values.min(), values.max())


def test_without_elements_there_is_neither_histogram_nor_picture():
    picture = tensor_picture(answer(np.zeros((0, 3))), STATE)
    assert picture.histogram is None and picture.matrix is None and fact(picture, "least") == "\u2013"


def test_more_than_two_axes_are_told_as_rows_and_columns():
    assert matrix_of(tensor_picture(answer(np.ones((6, 2, 2))), STATE)).title == "w, as 6 \u00d7 4"


def test_a_part_of_a_head_names_its_axes_and_what_it_leaves_out():
    cut = HeadCut(site="decoder.self", layer=1, head=2, part="qk")
    picture = tensor_picture(answer(np.eye(3), subject=cut), STATE)
    assert matrix_of(picture).title == "QK circuit, decoder.self L1 H2"
    assert (matrix_of(picture).row_title, matrix_of(picture).col_title) == ("stream at the query", "stream at the key")
    assert "biases" in fact(picture, "left out")


def test_singular_values_that_cannot_be_told_from_zero_are_left_out():
    values = np.array([2.0, 1.0, 1e-9])
    (curve,) = spectrum_picture(SpectrumAnswer(subject="w", shape=(3, 3), values=values), STATE).series
    assert curve.y[:2].tolist() == [2.0, 1.0] and np.isnan(curve.y[2])


@pytest.mark.parametrize(("values", "is_log"), [(np.arange(256.0), False), (np.append(np.zeros(99), 1.0), True)])
def test_a_histogram_has_a_log_scale_where_its_bins_differ_much(values: np.ndarray, is_log: bool):
    histogram = tensor_picture(answer(values), STATE).histogram
    assert histogram is not None and histogram.log_y == is_log
    assert np.isnan(histogram.series[0].y).any() == is_log
