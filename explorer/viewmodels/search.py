"""Finding names by a few of their letters."""

from __future__ import annotations

from collections.abc import Sequence


def best_matches(text: str, names: Sequence[str]) -> list[int]:
    """Indices of the names that hold every word typed, best first: words that begin a name, then a word, then anywhere.

    A word's letters may also be spread over the name in their order, as in "nhd" for "next head"; such names come last.
    """
    words = text.lower().split()
    ranked = [(_rank(words, name.lower()), index) for index, name in enumerate(names)]
    return [index for rank, index in sorted(ranked) if rank < _NONE]


_NONE = 1000


def _rank(words: list[str], name: str) -> int:
    return sum(_word_rank(word, name) for word in words)


def _word_rank(word: str, name: str) -> int:
    if name.startswith(word):
        return 0
    if f" {word}" in name:
        return 1
    if word in name:
        return 2
    letters = iter(name)
    return 3 if all(letter in letters for letter in word) else _NONE
