"""What a decoder beside an encoder is fed, from what its tokenizer makes of a target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core_model.checkpoint.text import as_fed
from core_model.config import SpecialTokens
from core_model.errors import TokenizerError
from core_model.tokenize import Encoding

PAD, BEGIN, END, FRENCH = 0, 1, 2, 9


class Numbers:
    """A tokenizer whose tokens are called what they are."""

    kind, source, warnings = "numbers", Path(), ()

    @property
    def target(self) -> Any:
        return self

    def token_text(self, id: int) -> str:
        return f"<{id}>"


def encoding(*ids: int, special: tuple[int, ...] = (BEGIN, END, FRENCH)) -> Encoding:
    """These ids, of which the special ones were added around the text."""
    return Encoding(
        ids=ids,
        texts=tuple(f"<{id}>" for id in ids),
        offsets=tuple(None if id in special else (0, 1) for id in ids),
        type_ids=(0,) * len(ids),
        special=tuple(id in special for id in ids),
        sequence=tuple(None if id in special else 0 for id in ids),
    )


@pytest.mark.parametrize(
    ("target", "decoder_start", "fed"),
    [
        pytest.param((5, 6, END), PAD, (PAD, 5, 6), id="T5, Marian: the padding, then the target without its end"),
        pytest.param((BEGIN, 5, 6, END), END, (END, BEGIN, 5, 6), id="BART: shifted right"),
        pytest.param((FRENCH, 5, 6, END), END, (END, FRENCH, 5, 6), id="mBART-50, M2M-100: the language follows"),
        pytest.param((5, 6, END, FRENCH), None, (FRENCH, 5, 6, END), id="mBART: the language is the start"),
        pytest.param((5, 6, END, FRENCH), FRENCH, (FRENCH, 5, 6, END), id="mBART, whose config names the language"),
        pytest.param((END,), PAD, (PAD,), id="an empty target"),
    ],
)
def test_the_decoder_is_fed_what_it_predicts_one_token_later(
    target: tuple[int, ...], decoder_start: int | None, fed: tuple[int, ...]
) -> None:
    """Each row is the shift_tokens_right of the family's code in transformers."""
    special = SpecialTokens(begin=BEGIN, end=END, padding=PAD, decoder_start=decoder_start)
    got = as_fed(encoding(*target), Numbers(), special)  # pyright: ignore[reportArgumentType]
    assert got.ids == fed
    assert got.texts == tuple(f"<{id}>" for id in fed)
    assert len(got.special) == len(got.offsets) == len(got.type_ids) == len(got.sequence) == len(fed)


def test_nothing_to_feed_is_an_error() -> None:
    with pytest.raises(TokenizerError, match="target is empty"):
        as_fed(encoding(END), Numbers(), SpecialTokens(end=END))  # pyright: ignore[reportArgumentType]
