from __future__ import annotations

import pytest

from explorer.workers.lru import Lru


def test_the_value_used_least_recently_goes_when_the_budget_is_spent() -> None:
    cache: Lru[str, str] = Lru(10)
    cache.put("a", "A", 4)
    cache.put("b", "B", 4)
    assert cache.get("a") == "A"
    cache.put("c", "C", 4)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == ("A", None, "C")
    assert cache.n_bytes == 8


def test_a_value_beyond_the_budget_stays_alone() -> None:
    cache: Lru[str, str] = Lru(10)
    cache.put("a", "A", 4)
    cache.put("huge", "H", 1000)
    assert (cache.get("a"), cache.get("huge")) == (None, "H")


def test_a_value_put_again_counts_once() -> None:
    cache: Lru[str, str] = Lru(10)
    cache.put("a", "old", 6)
    cache.put("a", "new", 3)
    assert (cache.get("a"), cache.n_bytes) == ("new", 3)


def test_every_dropped_value_is_let_go_once() -> None:
    gone: list[str] = []
    cache: Lru[str, str] = Lru(2, gone.append)
    for key in "abc":
        cache.put(key, key.upper(), 1)
    cache.put("b", "B2", 1)
    cache.clear()
    assert gone == ["A", "B", "C", "B2"]


def test_what_is_held_is_not_made_again_and_what_is_made_is_weighed() -> None:
    cache: Lru[str, str] = Lru(10)
    assert cache.get_or_make("a", lambda: "new", len) == "new"
    assert cache.get_or_make("a", lambda: "newer", len) == "new"
    assert cache.n_bytes == 3


def test_what_could_not_be_made_is_made_when_asked_again() -> None:
    cache: Lru[str, float] = Lru(10)
    with pytest.raises(ZeroDivisionError):
        cache.get_or_make("a", lambda: 1 / 0)
    assert cache.get_or_make("a", lambda: 0.5) == 0.5
