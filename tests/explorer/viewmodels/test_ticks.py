"""Round numbers, and no more of them than asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.viewmodels.ticks import format_ticks, index_step, nice_step, nice_ticks


@pytest.mark.parametrize(
    ("low", "high", "count", "expected"),
    [
        (0.0, 1.0, 5, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.0, 1.0, 2, [0.0, 0.5, 1.0]),
        (-1.0, 1.0, 4, [-1.0, -0.5, 0.0, 0.5, 1.0]),
        (0.13, 0.87, 4, [0.2, 0.4, 0.6, 0.8]),
        (3.0, 3.0, 4, []),
    ],
)
def test_ticks_are_round_and_within_the_range(low, high, count, expected):
    assert nice_ticks(low, high, count) == pytest.approx(expected)


@given(span=st.floats(1e-12, 1e12), count=st.integers(1, 50))
def test_a_step_divides_into_at_most_the_count_and_not_far_fewer(span, count):
    step = nice_step(span, count)
    assert span / step <= count * (1 + 1e-6)
    assert step <= 2.5 * span / count * (1 + 1e-6)


@pytest.mark.parametrize(
    ("density", "gap", "step"), [(20.0, 14.0, 1), (10.0, 14.0, 2), (3.0, 14.0, 5), (0.14, 36.0, 500)]
)
def test_labels_thin_out_by_round_steps(density, gap, step):
    assert index_step(density, gap) == step


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.0, 0.5, 1.0], ["0.0", "0.5", "1.0"]),
        ([0.0, 0.25, 0.5], ["0.00", "0.25", "0.50"]),
        ([0.0, 500.0, 1000.0], ["0", "500", "1000"]),
        ([0.0, 1e-5, 2e-5], ["0", "1e-5", "2e-5"]),
        ([0.0, 20000.0, 40000.0], ["0", "20\u2009000", "40\u2009000"]),
        ([0.0, 2e-3], ["0.000", "0.002"]),
        ([], []),
    ],
)
def test_numbers_of_one_axis_have_the_same_decimals(values, texts):
    assert format_ticks(values) == texts
