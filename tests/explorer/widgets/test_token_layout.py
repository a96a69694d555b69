"""Chips in lines: none lost, none overlapping, none beyond the edge."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from explorer.widgets.token_layout import GAP, lay_out

WIDTHS = st.lists(st.floats(5.0, 80.0), min_size=1, max_size=60)


@given(widths=WIDTHS, room=st.floats(100.0, 400.0))
def test_chips_of_a_line_do_not_overlap_and_stay_within_the_room(widths, room):
    layout = lay_out(widths, room, [False] * len(widths))
    assert [index for line in range(layout.n_lines) for index in layout.tokens_of(line)] == list(range(len(widths)))
    for line in range(layout.n_lines):
        tokens = layout.tokens_of(line)
        for before, after in pairwise(tokens):
            assert layout.lefts[after] >= layout.lefts[before] + widths[before]
        assert layout.lefts[tokens[-1]] + widths[tokens[-1]] <= room


@given(widths=WIDTHS, room=st.floats(100.0, 400.0), index=st.integers(0, 59))
def test_the_token_under_the_middle_of_its_chip_is_that_token(widths, room, index):
    index %= len(widths)
    layout = lay_out(widths, room, [False] * len(widths))
    middle = layout.lefts[index] + widths[index] / 2
    assert layout.token_at(layout.line_of(index), middle) == index


def test_a_line_ends_after_a_newline_token():
    layout = lay_out([10.0, 10.0, 10.0], 500.0, [False, True, False])
    assert layout.starts == (0, 2)


def test_without_wrapping_there_is_one_line():
    layout = lay_out([100.0] * 30, None, [True] * 30)
    assert layout.starts == (0,)
    assert layout.width == 30 * 100.0 + 29 * GAP


def test_beside_all_chips_there_is_no_token():
    layout = lay_out([10.0, 10.0], 500.0, [False, False])
    assert layout.token_at(0, 200.0) is None
    assert layout.token_at(3, 5.0) is None
    assert layout.token_at(-1, 5.0) is None


def test_no_tokens_make_no_lines():
    layout = lay_out((), 100.0, ())
    assert (layout.n_lines, layout.width, layout.token_at(0, 1.0)) == (0, 0.0, None)


@given(widths=WIDTHS, left=st.floats(0.0, 3000.0), width=st.floats(1.0, 500.0))
def test_the_tokens_between_two_places_are_those_that_reach_in_between(widths, left, width):
    layout = lay_out(widths, None, [False] * len(widths))
    found = layout.tokens_between(0, left, left + width)
    seen = [i for i, start in enumerate(layout.lefts) if start + widths[i] > left and start <= left + width]
    assert set(seen) <= set(found)
    assert len(found) <= len(seen) + 1  # the one whose gap begins there
