"""Expected rates come from the formulas: Vaswani et al. 2017, eq. 3; a straight line or half a cosine after warmup."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_model.errors import ConfigError
from core_model.training.schedules import SCHEDULES, make_schedule


@pytest.mark.parametrize(("update", "rate"), [(1, 1.747e-7), (2, 3.494e-7), (4000, 6.988e-4)])
def test_inverse_sqrt_with_width_gives_the_numbers_of_the_article(update, rate):
    schedule = make_schedule("inverse_sqrt", d_model=512, warmup=4000)
    assert schedule(update) == pytest.approx(rate, rel=3e-4)


@given(update=st.integers(1, 100_000), warmup=st.integers(1, 10_000), d_model=st.integers(1, 4096))
def test_inverse_sqrt_equals_equation_3(update, warmup, d_model):
    schedule = make_schedule("inverse_sqrt", d_model=d_model, warmup=warmup)
    assert schedule(update) == pytest.approx(d_model**-0.5 * min(update**-0.5, update * warmup**-1.5))


def test_inverse_sqrt_without_width_has_its_peak_where_the_warmup_ends():
    schedule = make_schedule("inverse_sqrt", peak=3e-4, warmup=100)
    assert max(range(1, 1000), key=schedule) == 100
    assert schedule(100) == pytest.approx(3e-4)
    assert schedule(400) == pytest.approx(1.5e-4)


def test_linear_falls_in_a_straight_line_to_zero_after_the_last_update():
    schedule = make_schedule("linear", peak=1.0, warmup=4, total=14)
    assert [schedule(u) for u in (1, 4, 5, 10, 14, 15)] == pytest.approx([1 / 5, 4 / 5, 1, 0.5, 0.1, 0])


def test_cosine_is_half_its_peak_in_the_middle_of_the_decay():
    schedule = make_schedule("cosine", peak=2.0, warmup=0, total=10)
    assert [schedule(u) for u in (1, 6, 10)] == pytest.approx([2, 1, 1 + math.cos(0.9 * math.pi)])


def test_constant_stays_at_its_peak_after_the_warmup():
    schedule = make_schedule("constant", peak=0.5, warmup=3)
    assert [schedule(u) for u in (1, 2, 3, 4, 1000)] == pytest.approx([0.125, 0.25, 0.375, 0.5, 0.5])


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(("warmup", "total"), [(0, 10), (10, 10), (3, 10), (0, 1), (1, 1)])
def test_every_update_of_a_run_has_a_rate_above_zero_and_at_most_the_peak(name, warmup, total):
    schedule = make_schedule(name, peak=0.25, warmup=warmup, total=total)
    rates = [schedule(update) for update in range(1, total + 1)]
    assert all(0 < rate <= 0.25 for rate in rates)


@pytest.mark.parametrize("name", SCHEDULES)
def test_without_warmup_the_first_update_has_the_peak(name):
    assert make_schedule(name, peak=0.1, warmup=0, total=10)(1) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("step", {"warmup": 1}, "schedule"),
        ("constant", {"warmup": -1}, "warmup"),
        ("constant", {"warmup": 1, "peak": math.inf}, "peak"),
        ("linear", {"warmup": 11, "total": 10}, "total"),
        ("cosine", {"warmup": 1}, "total"),
        ("cosine", {"warmup": 1, "total": 10, "d_model": 512}, "d_model"),
        ("inverse_sqrt", {"warmup": 1, "d_model": 0}, "d_model"),
    ],
)
def test_a_setting_without_meaning_is_refused_by_name(name, options, field):
    with pytest.raises(ConfigError, match=rf"^{field} is"):
        make_schedule(name, **options)


def test_updates_are_counted_from_one():
    with pytest.raises(ConfigError, match="counted from 1"):
        make_schedule("constant", warmup=0)(0)
