"""Tokens to words by their offsets."""

from __future__ import annotations

from core_model.analysis.words import word_of_token
from core_model.tokenize import Encoding


def _encoding(spans: list[tuple[int, int] | None], sequence: list[int | None]) -> Encoding:
    n = len(spans)
    return Encoding(
        ids=tuple(range(n)),
        texts=("x",) * n,
        offsets=tuple(spans),
        type_ids=(0,) * n,
        special=tuple(s is None for s in spans),
        sequence=tuple(sequence),
    )


def test_pieces_of_a_word_join_and_special_tokens_stand_alone() -> None:
    text = "walking home"
    tokens = _encoding([None, (0, 4), (4, 7), (8, 12), None], [None, 0, 0, 0, None])
    assert word_of_token(tokens, text) == (0, 1, 1, 2, 3)


def test_a_token_that_carries_its_leading_space_starts_a_word() -> None:
    text = "walking home"
    assert word_of_token(_encoding([(0, 4), (4, 7), (7, 12)], [0, 0, 0]), text) == (0, 0, 1)


def test_the_second_text_of_a_pair_starts_a_word_of_its_own() -> None:
    tokens = _encoding([(0, 2), (0, 2)], [0, 1])
    assert word_of_token(tokens, "ab", "cd") == (0, 1)
