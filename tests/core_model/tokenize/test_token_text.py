from hypothesis import given
from hypothesis import strategies as st

from core_model.tokenize.token_text import BYTE_OF_CHARACTER, Spelling, text_of, texts_of

SMILE = "🙂".encode()


def test_a_character_over_three_tokens_shows_as_its_parts():
    assert texts_of([b"a", SMILE[:1], SMILE[1:2], SMILE[2:], b"b"]) == ("a", "🙂 1/3", "🙂 2/3", "🙂 3/3", "b")


def test_a_space_before_part_of_a_character_stays():
    assert texts_of([b" " + SMILE[:2], SMILE[2:] + b"!"]) == (" 🙂 1/2", "🙂 2/2 !")


def test_a_token_can_hold_the_end_of_one_character_and_the_start_of_the_next():
    first, second = "漢".encode(), "字".encode()
    assert texts_of([first[:1], first[1:] + second[:1], second[1:]]) == ("漢 1/2", "漢 2/2 字 1/2", "字 2/2")


def test_parts_of_an_invisible_character_are_named_by_its_code_point():
    joiner = "\u200d".encode()
    assert texts_of([joiner[:1], joiner[1:]]) == ("U+200D 1/2", "U+200D 2/2")


def test_bytes_that_are_no_character_are_spelled():
    assert text_of(b"\xf0\x9f") == "<0xF0><0x9F>"
    assert texts_of([b"\xff", b"a"]) == ("<0xFF>", "a")


@given(st.text(), st.data())
def test_parts_never_show_a_replacement_character(text: str, data: st.DataObject):
    whole = text.replace("\ufffd", "").encode("utf-8", "ignore")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    parts = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    shown = texts_of(parts)
    assert len(shown) == len(parts)
    assert not any("\ufffd" in one for one in shown)


def test_the_byte_alphabet_of_gpt2_covers_every_byte_once():
    assert sorted(BYTE_OF_CHARACTER.values()) == list(range(256))
    # From the released vocabulary: a space is Ġ, a newline Ċ.
    assert (BYTE_OF_CHARACTER["Ġ"], BYTE_OF_CHARACTER["Ċ"], BYTE_OF_CHARACTER["A"]) == (32, 10, 65)


def test_spellings_stand_for_bytes():
    assert Spelling(byte_level=True).bytes_of("Ġcafé".replace("é", "Ã©")) == " café".encode()
    assert Spelling(byte_pieces=True, space="▁").bytes_of("<0xF0>") == b"\xf0"
    assert Spelling(byte_pieces=True, space="▁").bytes_of("▁the") == b" the"
    assert Spelling(byte_level=True, word_end="</w>").bytes_of("the</w>") == b"the"
    assert Spelling().bytes_of("##ing") == b"##ing"
