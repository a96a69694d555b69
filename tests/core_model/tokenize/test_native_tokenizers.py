"""Character and byte tokenizers, and ids typed by hand."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_model.errors import TokenizerError
from core_model.tokenize import Encoding, Tokenizer
from core_model.tokenize.native import ByteTokenizer, CharacterTokenizer
from core_model.tokenize.template import Template
from core_model.tokenize.typed_ids import TypedIds

Load = Callable[..., Tokenizer]
SURROUNDED = Template(single="<bos> $A <eos>", pair="<bos> $A <eos> $B:1 <eos>:1")
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def assert_in_order(encoding: Encoding, text: str) -> None:
    spans = [span for span in encoding.offsets if span is not None]
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert spans == sorted(spans)


@given(TEXT)
def test_bytes_come_back_as_their_text(text: str):
    tokenizer = ByteTokenizer(special=["<bos>", "<eos>"], template=SURROUNDED)
    encoding = tokenizer.encode(text)
    assert tokenizer.decode(encoding.ids) == text
    assert len(encoding) == len(text.encode()) + 2
    assert_in_order(encoding, text)


@given(TEXT)
def test_characters_come_back_as_their_text(text: str):
    tokenizer = CharacterTokenizer.of_text(text + "abc", special=["<bos>", "<eos>"], template=SURROUNDED)
    encoding = tokenizer.encode(text)
    assert tokenizer.decode(encoding.ids) == text
    assert encoding.texts == ("<bos>", *text, "<eos>")
    assert_in_order(encoding, text)


def test_control_tokens_come_first_then_the_alphabet():
    tokenizer = CharacterTokenizer.of_text("cab", special=["<pad>", "<bos>", "<eos>"], template=SURROUNDED)
    encoding = tokenizer.encode("ab", "c")
    assert encoding.ids == (1, 3, 4, 2, 5, 2)
    assert encoding.type_ids == (0, 0, 0, 0, 1, 1)
    assert encoding.sequence == (None, 0, 0, None, 1, None)
    assert encoding.offsets == (None, (0, 1), (1, 2), None, (0, 1), None)
    assert tokenizer.special_id("<pad>") == 0
    assert [tokenizer.token_text(id) for id in (0, 3, 99)] == ["<pad>", "a", "<id 99>"]


def test_a_character_outside_the_alphabet_is_named_with_its_place():
    tokenizer = CharacterTokenizer.of_text("abc")
    with pytest.raises(TokenizerError, match=r"Character 2 of the text, 'X', is not among the 3 characters"):
        tokenizer.encode("aXb")


def test_a_character_outside_the_alphabet_can_be_unknown():
    tokenizer = CharacterTokenizer.of_text("abc", special=["<unk>"], unknown="<unk>")
    assert tokenizer.encode("aXb").ids == (1, 0, 2)
    assert tokenizer.encode("aXb").texts == ("a", "<unk>", "b")


def test_an_emoji_of_bytes_shows_as_parts():
    assert ByteTokenizer().encode("é").texts == ("é 1/2", "é 2/2")
    assert ByteTokenizer().token_text(0xF0) == "<0xF0>"
    assert ByteTokenizer().decode([0xF0, 0x9F]) == "<0xF0><0x9F>"


@pytest.mark.parametrize(
    "tokenizer",
    [
        CharacterTokenizer.of_text(
            'ab"\n🙂', special=["<bos>", "<eos>", "<unk>"], template=SURROUNDED, unknown="<unk>"
        ),
        ByteTokenizer(special=["<bos>", "<eos>"], template=SURROUNDED),
    ],
    ids=["characters", "bytes"],
)
def test_a_saved_tokenizer_loads_as_the_same(tokenizer: CharacterTokenizer | ByteTokenizer, tmp_path: Path, load: Load):
    path = tokenizer.save(tmp_path)
    loaded = load(tmp_path)
    assert (loaded.kind, loaded.source, loaded.vocab_size) == (tokenizer.kind, path, tokenizer.vocab_size)
    assert loaded.encode("ab\n", "🙂?") == tokenizer.encode("ab\n", "🙂?")


def test_a_file_of_a_later_version_says_to_update(tmp_path: Path, load: Load):
    path = ByteTokenizer().save(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace('"version": 1', '"version": 2'), encoding="utf-8")
    with pytest.raises(TokenizerError, match=r"version 2.*update"):
        load(tmp_path)


def test_control_tokens_must_be_there_and_differ():
    with pytest.raises(TokenizerError, match="repeat"):
        ByteTokenizer(special=["<s>", "<s>"])
    with pytest.raises(TokenizerError, match="puts <bos> around"):
        ByteTokenizer(template=SURROUNDED)
    with pytest.raises(TokenizerError, match="single characters, each once"):
        CharacterTokenizer(["ab"])


def test_native_ids_beyond_the_models_rows_are_refused(tmp_path: Path, load: Load):
    CharacterTokenizer.of_text("abc").save(tmp_path)
    tokenizer = load(tmp_path, vocab_size=2)
    with pytest.raises(TokenizerError, match=r"'c' has id 2.*2 rows"):
        tokenizer.encode("abc")


def test_typed_ids_are_read_with_their_places():
    encoding = TypedIds(100).encode("7, 12 99", "3")
    assert encoding.ids == (7, 12, 99, 3)
    assert encoding.offsets == ((0, 1), (3, 5), (6, 8), (0, 1))
    assert encoding.sequence == (0, 0, 0, 1)
    assert TypedIds(100).decode(encoding.ids) == "7 12 99 3"


@pytest.mark.parametrize("word", ["100", "-1", "1.5", "cat", "9" * 50, "²"])
def test_what_is_no_id_of_the_model_is_refused_with_the_range(word: str):
    with pytest.raises(TokenizerError, match="numbers from 0 to 99"):
        TypedIds(100).encode(f"1 {word}")
