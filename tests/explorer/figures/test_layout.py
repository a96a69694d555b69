from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.figures.files import ExportError
from explorer.figures.layout import LEAST_LABEL_SIZE, POINTS_PER_MM, Layout, lay_out
from explorer.figures.spec import FigureOptions, FigureSpec, Provenance
from explorer.theme.token_text import Name
from explorer.viewmodels.records import HeatmapPicture


class Typewriter:
    """A font in which every character is as wide as half its size."""

    def width(self, text: str, size: float) -> float:
        return 0.5 * size * len(text)

    def printable(self, text: str) -> str:
        return text


def words(n: int, length: int = 4) -> tuple[str, ...]:
    return tuple(f"{index:x}".zfill(length) for index in range(n))


def placed(spec: FigureSpec) -> Layout:
    return lay_out(spec, Typewriter())


def test_the_page_has_the_width_asked_for(make_spec):
    for width in (85, 114, 174):
        assert placed(make_spec(options=FigureOptions(width_mm=width))).width == pytest.approx(width / 25.4 * 72)


@given(
    n_rows=st.integers(1, 200),
    n_cols=st.integers(1, 200),
    width=st.floats(60, 300),
    dpi=st.integers(72, 1200),
    with_tokens=st.booleans(),
)
def test_nothing_leaves_the_page_and_nothing_overlaps(n_rows, n_cols, width, dpi, with_tokens):
    tokens = words(n_rows, 12) if with_tokens else (), words(n_cols, 3) if with_tokens else ()
    picture = HeatmapPicture(
        values=np.zeros((n_rows, n_cols), dtype=np.float32),
        shape=(n_rows, n_cols),
        rows=(0, n_rows),
        cols=(0, n_cols),
        levels=(0, 1),
        title="",
        scale_name="attention weight, linear",
        row_labels=tokens[0],
        col_labels=tokens[1],
        masked=np.ones((n_rows, n_cols), dtype=bool),
    )
    source = Provenance(
        model="m", family="f", site="decoder.self", layer=0, head=0, dtype="F32", header_sha256="0" * 8, text="a text"
    )
    layout = placed(FigureSpec(picture=picture, provenance=source, options=FigureOptions(width_mm=width, dpi=dpi)))

    size, matrix = layout.font_size, layout.matrix
    assert layout.row_title_x + size / 2 <= matrix.left - layout.rows.width
    assert layout.col_title_y + size <= matrix.top - layout.cols.height
    assert matrix.right < layout.bar.left
    assert layout.bar_title_x + size / 2 <= layout.width
    assert max(matrix.bottom, layout.bar.bottom) < layout.legend_y < layout.caption_y < layout.height
    for labels, pitch in ((layout.rows, matrix.height / n_rows), (layout.cols, matrix.width / n_cols)):
        places = [index for index, _ in labels.labels]
        across = labels.size if labels is layout.rows or labels.turned else labels.width
        assert all((b - a) * pitch >= across for a, b in itertools.pairwise(places))


def test_edges_of_the_matrix_lie_on_whole_pixels(make_spec):
    for dpi in (72, 300, 601):
        layout = placed(make_spec(words(7), options=FigureOptions(dpi=dpi)))
        box = layout.matrix
        pixels = np.array([box.left, box.right, box.top, box.bottom, layout.height]) * dpi / 72
        assert pixels == pytest.approx(np.rint(pixels), abs=1e-6)


def test_cells_are_square_and_whole_pixels_where_that_costs_little(make_spec):
    layout = placed(make_spec(words(9), options=FigureOptions(dpi=300)))
    assert layout.matrix.width == pytest.approx(layout.matrix.height)
    assert layout.matrix.width * 300 / 72 / 9 == pytest.approx(round(layout.matrix.width * 300 / 72 / 9))


def test_cells_of_a_matrix_of_one_row_stay_visible(make_spec):
    layout = placed(make_spec(values=np.zeros((1, 400))))
    assert layout.matrix.height >= 20


def test_a_tall_matrix_ends_with_the_page(make_spec):
    assert placed(make_spec(values=np.zeros((500, 4)))).height < 270 * POINTS_PER_MM


def test_every_token_is_labelled_while_letters_are_legible(make_spec):
    layout = placed(make_spec(words(40), options=FigureOptions(width_mm=114, font_size=8)))
    assert [text for _, text in layout.rows.labels] == list(words(40))
    assert LEAST_LABEL_SIZE <= layout.rows.size < 8


def test_labels_thin_out_when_there_are_too_many_and_then_carry_their_index(make_spec):
    layout = placed(make_spec(words(300)))
    assert [index for index, _ in layout.cols.labels] == list(range(0, 300, 20))
    assert layout.cols.labels[1][1] == f"20 {words(300)[20]}"
    assert layout.cols.size == 7


def test_the_name_of_a_patch_says_where_it_is_without_an_index(make_spec):
    names = [Name(f"patch {index // 17},{index % 17}") for index in range(289)]
    layout = placed(make_spec(names))
    assert layout.cols.labels[1] == (20, "patch 1,3")


def test_thinned_labels_keep_to_round_indices_in_a_part_of_the_matrix(make_spec):
    layout = placed(make_spec(values=np.zeros((90, 90)), shape=(1000, 1000), rows=(203, 293), cols=(203, 293)))
    indices = [index for index, _ in layout.rows.labels]
    assert indices[0] in (205, 210, 220)
    assert layout.rows.labels[0][1] == str(indices[0])


def test_a_long_token_is_cut_with_an_ellipsis(make_spec):
    layout = placed(make_spec(("Donaudampfschifffahrtsgesellschaft" * 3, "a")))
    text = layout.rows.labels[0][1]
    assert text.startswith("Donau") and text.endswith("…")
    assert layout.rows.width <= 0.2 * layout.width


def test_short_labels_stand_upright_over_their_columns_and_long_ones_are_turned(make_spec):
    assert not placed(make_spec(("a", "b", "c"))).cols.turned
    assert placed(make_spec(words(20, 8))).cols.turned


def test_few_rows_are_all_labelled_however_many_columns_there_are(make_spec):
    layout = placed(make_spec(values=np.zeros((3, 200)), row_labels=words(3), col_labels=words(200)))
    assert [text for _, text in layout.rows.labels] == list(words(3))
    assert len(layout.cols.labels) < 40


def test_without_token_labels_the_indices_remain(make_spec):
    layout = placed(make_spec(("the", "cat"), options=FigureOptions(labels=False)))
    assert layout.rows.labels == ((0, "0"), (1, "1"))


def test_the_caption_can_be_left_out(make_spec):
    with_caption, without = placed(make_spec()), placed(make_spec(options=FigureOptions(caption=False)))
    assert without.caption == ()
    assert without.height < with_caption.height


def test_a_width_that_leaves_no_room_for_the_matrix_is_refused(make_spec):
    with pytest.raises(
        ExportError, match=r"The width is 30 mm: too narrow for this matrix at 24 pt; choose a wider figure"
    ):
        placed(make_spec(options=FigureOptions(width_mm=30, font_size=24)))


def test_the_legend_names_only_the_kinds_of_cell_there_are(make_spec):
    values = np.zeros((2, 2))
    assert placed(make_spec(values=values)).legend == ()
    assert placed(make_spec(values=values, masked=np.eye(2, dtype=bool))).legend == ("masked",)
    values[0, 1] = np.nan
    assert placed(make_spec(values=values, masked=np.eye(2, dtype=bool))).legend == ("masked", "not computed")


def test_ticks_of_the_bar_are_those_of_the_picture_or_round_numbers(make_spec):
    assert [text for _, text in placed(make_spec()).bar_ticks] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    ticks = ((0.0, "1e-4"), (1.0, "1"), (2.0, "beyond"))
    assert placed(make_spec(ticks=ticks)).bar_ticks == ticks[:2]
