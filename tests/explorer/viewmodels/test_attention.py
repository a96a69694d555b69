from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core_model.results import HeatmapView, Reduce
from explorer.state.answers import MatrixAnswer
from explorer.state.app_state import Display, ScaleName, Viewport
from explorer.state.training import TrainingFacts
from explorer.viewmodels.attention import matrix_picture, matrix_tile
from explorer.viewmodels.readout import readout
from explorer.viewmodels.source_line import source_line
from tests.explorer.states import encoding, model_info, opened, traced_state

TOKENS = encoding("the", " cat", " sat")
WEIGHTS = np.array([[1, 0, 0], [0.25, 0.75, 0], [0.125, 0.5, 0.375]], dtype=np.float32)
MASKED = np.triu(np.ones((3, 3), dtype=bool), 1)


def answer(*, site: str = "decoder.self") -> MatrixAnswer:
    view = HeatmapView(
        site=site, layer=1, head=2, rows=(0, 3), cols=(0, 3), values=WEIGHTS, masked=MASKED, cells=(1, 1), reduce="max"
    )
    return MatrixAnswer(view=view, row_peaks=WEIGHTS.max(axis=1), queries=TOKENS, keys=TOKENS)


def pooled_answer(n: int = 8, size: int = 4) -> MatrixAnswer:
    values = np.full((size, size), 0.5, dtype=np.float32)
    view = HeatmapView(
        site="decoder.self",
        layer=0,
        head=0,
        rows=(0, n),
        cols=(0, n),
        values=values,
        masked=np.zeros((size, size), dtype=bool),
        cells=(-(-n // size), -(-n // size)),
        reduce="max",
    )
    words = encoding(*("a",) * n)
    return MatrixAnswer(view=view, row_peaks=values.max(axis=1), queries=words, keys=words)


def test_rows_are_queries_and_columns_are_keys() -> None:
    picture = matrix_picture(answer(), traced_state())
    assert picture.values[2, 1] == 0.5
    assert picture.row_labels[2] == " sat"
    assert picture.col_labels[1] == " cat"
    assert "query" in picture.row_title
    assert "key" in picture.col_title


def test_masked_cells_are_marked_and_not_merely_zero() -> None:
    picture = matrix_picture(answer(), traced_state())
    assert picture.masked is not None
    assert picture.masked.tolist() == MASKED.tolist()


def test_a_key_received_the_mean_over_the_queries_that_may_see_it() -> None:
    picture = matrix_picture(answer(), traced_state())
    assert picture.received is not None
    assert picture.received == pytest.approx([(1 + 0.25 + 0.125) / 3, (0.75 + 0.5) / 2, 0.375])


def test_beside_rows_that_sum_to_one_stands_their_largest_weight() -> None:
    picture = matrix_picture(answer(), traced_state())
    assert picture.given_title == "largest"
    assert picture.given is not None and picture.given.tolist() == [1.0, 0.75, 0.5]


def test_beside_rows_that_do_not_sum_to_one_stands_their_sum() -> None:
    halved = answer()
    view = replace(halved.view, values=WEIGHTS / 2)
    picture = matrix_picture(replace(halved, view=view), traced_state())
    assert picture.given_title == "given"
    assert picture.given is not None and picture.given.tolist() == [0.5, 0.5, 0.5]


def test_beside_pooled_rows_stands_the_largest_weight_of_their_tokens() -> None:
    picture = matrix_picture(pooled_answer(), traced_state())
    assert (picture.given_title, picture.given is not None) == ("largest", True)


def test_the_title_names_layer_and_head_and_the_scale_is_printed() -> None:
    picture = matrix_picture(answer(), traced_state(display=Display(scale="log", colormap="magma")))
    assert picture.title == "Decoder self-attention, layer 1 head 2"
    assert picture.scale_name == "attention weight, log"
    assert picture.colormap == "magma"


def test_cross_attention_says_which_stack_an_axis_is() -> None:
    picture = matrix_picture(answer(site="decoder.cross"), traced_state())
    assert "decoder" in picture.row_title
    assert "encoder" in picture.col_title


def test_a_pooled_picture_says_how_it_was_pooled() -> None:
    picture = matrix_picture(pooled_answer(8, 4), traced_state())
    assert picture.note.startswith("maximum of up to 2 x 2 cells;")
    assert picture.received is None


def test_an_exact_part_lies_over_the_pooled_whole_on_its_scale() -> None:
    state = traced_state()
    whole = matrix_picture(pooled_answer(), state)
    view = replace(answer().view, rows=(2, 5), cols=(1, 4))
    tile = matrix_tile(
        MatrixAnswer(view=view, row_peaks=np.ones(3, np.float32), queries=TOKENS, keys=TOKENS), whole, state
    )
    assert (tile.rows, tile.cols, tile.shape) == ((2, 5), (1, 4), (8, 8))
    assert (tile.levels, tile.identity) == (whole.levels, whole.identity)
    assert tile.note == "exact cells"


def test_the_card_reads_the_exact_weight_and_its_rank() -> None:
    cell = readout(matrix_picture(answer(), traced_state(display=Display(scale="log"))), 2, 2)
    assert cell is not None
    assert (cell.query_text, cell.key_text) == (" sat", " sat")
    assert (cell.weight, cell.rank) == ("0.3750", "rank 2 of 3")


def test_a_rank_is_among_the_keys_that_the_query_may_look_at() -> None:
    cell = readout(matrix_picture(answer(), traced_state()), 1, 1)
    assert cell is not None
    assert cell.rank.endswith("of 2")  # the third key comes later


def test_the_card_says_masked_instead_of_zero() -> None:
    cell = readout(matrix_picture(answer(), traced_state()), 0, 2)
    assert cell is not None
    assert (cell.weight, cell.rank) == ("masked", "")


def test_the_card_of_a_pooled_picture_gives_a_bound_and_no_rank() -> None:
    cell = readout(matrix_picture(pooled_answer(), traced_state()), 7, 0)
    assert cell is not None
    assert (cell.weight, cell.rank) == ("at most 0.5000", "")


@pytest.mark.parametrize(("reduce", "words"), [("mean", "mean 0.5000"), ("sample", "sampled: 0.5000")])
def test_the_card_says_at_most_of_a_maximum_alone(reduce: Reduce, words: str) -> None:
    pooled = pooled_answer()
    cell = readout(matrix_picture(replace(pooled, view=replace(pooled.view, reduce=reduce)), traced_state()), 7, 0)
    assert cell is not None
    assert (cell.weight, cell.rank) == (words, "")


def test_a_bound_is_one_whatever_the_length() -> None:
    """81 cells at up to 20 values: five cells a value, and of the last one."""
    weights = np.random.default_rng(0).random((81, 81)).astype(np.float32)
    values = np.array([[weights[r : r + 5, c : c + 5].max() for c in range(0, 81, 5)] for r in range(0, 81, 5)])
    pooled = pooled_answer(81, 17)
    picture = matrix_picture(replace(pooled, view=replace(pooled.view, values=values)), traced_state())
    for query, key in np.ndindex(81, 81):
        cell = readout(picture, query, key)
        assert cell is not None and weights[query, key] <= float(cell.weight.removeprefix("at most ")) + 5e-5


def test_a_weight_that_is_no_number_has_no_rank() -> None:
    cell = readout(matrix_picture(spoilt_answer(), traced_state()), 1, 0)
    assert cell is not None
    assert (cell.weight, cell.rank) == ("nan", "rank \u2013 of 2")


def test_the_status_names_the_source_of_the_picture() -> None:
    state = traced_state()
    line = source_line(state, matrix_picture(answer(), state))
    assert line == "tiny · decoder self-attention, layer 0 head 0 · softmax · linear 0 to 1 · exact cells"
    assert source_line(state, None) == "tiny"


def test_the_status_names_the_run_in_the_layout_for_training() -> None:
    assert source_line(traced_state(layout="train"), None) == ""
    run = TrainingFacts(phase="running", run=Path("/runs/reverse-3"))
    assert source_line(traced_state(layout="train", training=run), None) == "reverse-3"


def test_the_status_names_what_could_not_be_opened() -> None:
    assert source_line(traced_state(model=None), None) == "/models/tiny"


def spoilt_answer() -> MatrixAnswer:
    """Row 1 is not a number where it is not masked."""
    good = answer()
    values = np.where(MASKED, 0, WEIGHTS).astype(np.float32)
    values[1, :2] = np.nan
    return replace(good, view=replace(good.view, values=values), row_peaks=values.max(axis=1))


@pytest.mark.parametrize("scale", ["linear", "log", "row_max", "sink_excluded"])
def test_what_is_not_a_number_has_a_look_of_its_own_in_every_scale(scale: ScaleName) -> None:
    picture = matrix_picture(spoilt_answer(), traced_state(display=Display(scale=scale)))
    assert picture.missing is not None
    assert picture.missing[1, :2].tolist() == [True, True]
    assert not picture.missing[2, 1:].any()
    assert "not a number" in picture.missing_name
    assert np.isfinite(picture.levels).all()


def test_no_strip_is_drawn_from_what_is_not_a_number() -> None:
    picture = matrix_picture(spoilt_answer(), traced_state())
    assert picture.received is None
    assert picture.given is None


@pytest.mark.parametrize(("size", "said"), [((3, 3), "exact cells"), ((2, 3), "each pixel the strongest it covers")])
def test_the_status_says_what_a_pixel_of_the_screen_shows(size: tuple[int, int], said: str) -> None:
    state = traced_state(viewport=Viewport(rows=(0, 3), cols=(0, 3), size=size))
    assert source_line(state, matrix_picture(answer(), state)).endswith(said)


def test_a_long_name_leaves_the_status_room_for_the_head() -> None:
    state = traced_state(model=opened(info=model_info(name="a" * 100 + "b" * 100)))
    line = source_line(state, matrix_picture(answer(), state))
    assert line.startswith("aaaa") and "bbb · decoder self-attention" in line
    assert len(line.partition(" · ")[0]) == 48
