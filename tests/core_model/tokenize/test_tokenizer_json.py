"""tokenizer.json, run by the tokenizers library."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors
from tokenizers import Tokenizer as Library

from core_model.errors import TokenizerError
from core_model.tokenize import Tokenizer

Load = Callable[..., Tokenizer]
Write = Callable[..., Path]


def word_level(**changes: object) -> dict:
    """A tokenizer.json of whole words that begins each text with <s>."""
    library = Library(models.WordLevel({"<unk>": 0, "<s>": 1, "the": 2, "cat": 3, "sat": 4}, unk_token="<unk>"))
    library.add_special_tokens([AddedToken(token, special=True) for token in ("<unk>", "<s>")])
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    library.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    return json.loads(library.to_str()) | changes


@pytest.fixture
def byte_level(gpt2_folder: Path) -> dict:
    library = Library(models.BPE.from_file(str(gpt2_folder / "vocab.json"), str(gpt2_folder / "merges.txt")))
    library.add_special_tokens([AddedToken("<|endoftext|>", special=True)])
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    return json.loads(library.to_str())


def test_special_tokens_have_no_offsets_and_belong_to_no_text(write: Write, load: Load):
    encoding = load(write(tokenizer__json=word_level())).encode("the cat", "sat")
    assert encoding.ids == (1, 2, 3, 1, 4)
    assert encoding.texts == ("<s>", "the", "cat", "<s>", "sat")
    assert encoding.offsets == (None, (0, 3), (4, 7), None, (0, 3))
    assert encoding.special == (True, False, False, True, False)
    assert encoding.sequence == (None, 0, 0, None, 1)
    assert encoding.type_ids == (0, 0, 0, 1, 1)


def test_a_control_token_typed_in_the_text_keeps_its_place(write: Write, load: Load):
    encoding = load(write(tokenizer__json=word_level())).encode("the <s> cat")
    assert encoding.ids == (1, 2, 1, 3)
    assert encoding.offsets[2] == (4, 7)
    assert encoding.special == (True, False, False, False)


def test_truncation_and_padding_of_the_file_are_ignored_and_said(write: Write, load: Load):
    truncation = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    padding = {
        "strategy": {"Fixed": 32},
        "direction": "Left",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "<unk>",
    }
    tokenizer = load(write(tokenizer__json=word_level(truncation=truncation, padding=padding)))
    assert tokenizer.encode("the cat sat").ids == (1, 2, 3, 4)
    assert "truncation to 2 tokens" in tokenizer.warnings[0]
    assert "padding" in tokenizer.warnings[1]


def test_an_emoji_of_byte_tokens_shows_as_parts(byte_level: dict, write: Write, load: Load):
    tokenizer = load(write(tokenizer__json=byte_level))
    encoding = tokenizer.encode("🙂")
    assert encoding.texts == ("🙂 1/4", "🙂 2/4", "🙂 3/4", "🙂 4/4")
    assert encoding.offsets == ((0, 1),) * 4
    assert tokenizer.token_text(encoding.ids[0]) == "<0xF0>"
    assert tokenizer.decode(encoding.ids) == "🙂"


def test_offsets_cut_the_text_into_the_texts_of_its_tokens(byte_level: dict, write: Write, load: Load):
    text = "The cat sat on the mat."
    encoding = load(write(tokenizer__json=byte_level)).encode(text)
    assert tuple(text[slice(*span)] for span in encoding.offsets if span is not None) == encoding.texts
    assert "".join(encoding.texts) == text


def test_decode_leaves_out_control_tokens_and_ids_without_a_token(byte_level: dict, write: Write, load: Load):
    tokenizer = load(write(tokenizer__json=byte_level))
    ids = tokenizer.encode("The cat").ids
    assert tokenizer.decode([0, *ids, 0, 10**9, -1]) == "The cat"
    assert tokenizer.decode([0]) == ""
    assert tokenizer.token_text(10**9) == "<id 1000000000>"


def test_tokenizer_json_wins_over_the_older_files(write: Write, load: Load):
    folder = write(tokenizer__json=word_level(), vocab__txt="[UNK]\n[CLS]\n[SEP]\nthe\n")
    assert load(folder).kind == "tokenizer.json (WordLevel)"


def test_an_id_beyond_the_models_rows_is_refused_when_it_is_used(write: Write, load: Load):
    tokenizer = load(write(tokenizer__json=word_level()), vocab_size=4)
    assert tokenizer.encode("the cat").ids == (1, 2, 3)
    with pytest.raises(TokenizerError, match=r"'sat' has id 4, but the model's vocabulary ends at id 3 \(4 rows\)"):
        tokenizer.encode("the sat")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": {"type": "QuantumBPE"}}, "refused"),
        (
            {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "([a"}, "behavior": "Isolated", "invert": False}},
            "refu",
        ),
        ({"truncation": 3}, "truncation"),
        ({"model": None}, "model"),
    ],
)
def test_a_file_the_library_refuses_is_named(changes: dict, said: str, write: Write, load: Load):
    with pytest.raises(TokenizerError, match=f"tokenizer.json .*{said}"):
        load(write(tokenizer__json=word_level(**changes)))


def test_a_panic_of_the_library_is_an_error_like_any_other(write: Write, capfd: pytest.CaptureFixture[str], load: Load):
    corrupt = {"type": "Precompiled", "precompiled_charsmap": "AAAA////"}
    with pytest.raises(TokenizerError, match=r"tokenizer\.json.* panic"):
        load(write(tokenizer__json=word_level(normalizer=corrupt)))
    capfd.readouterr()  # the library reports its panic on stderr


def test_half_a_surrogate_pair_is_refused_with_its_place(write: Write, load: Load):
    with pytest.raises(TokenizerError, match=r"Character 5 .*U\+DC00"):
        load(write(tokenizer__json=word_level())).encode("the \udc00")
