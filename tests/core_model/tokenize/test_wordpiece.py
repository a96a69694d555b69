"""vocab.txt, held against transformers reading the same folder."""

from collections.abc import Callable
from pathlib import Path

import pytest
import transformers

from core_model.errors import TokenizerError
from core_model.tokenize import Tokenizer

Load = Callable[..., Tokenizer]
Write = Callable[..., Path]


@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_offsets_and_segments_agree_with_transformers(
    lowercase: bool, wordpiece_vocabulary: list[str], texts: list[str], write: Write, load: Load
):
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase}
    folder = write(vocab__txt="\n".join(wordpiece_vocabulary) + "\n", tokenizer_config__json=config)
    ours, reference = load(folder), transformers.BertTokenizer.from_pretrained(folder)
    for text in [*texts, "The [MASK] sat [SEP] on"]:
        expected = reference(text, "The other", return_offsets_mapping=True)
        encoding = ours.encode(text, "The other")
        assert list(encoding.ids) == expected.input_ids, text
        assert list(encoding.type_ids) == expected.token_type_ids
        assert [span or (0, 0) for span in encoding.offsets] == expected.offset_mapping


def test_mpnet_agrees_with_transformers(wordpiece_vocabulary: list[str], texts: list[str], write: Write, load: Load):
    names = {"[CLS]": "<s>", "[SEP]": "</s>", "[PAD]": "<pad>", "[MASK]": "<mask>"}
    lines = "\n".join(names.get(token, token) for token in wordpiece_vocabulary) + "\n"
    config = {"tokenizer_class": "MPNetTokenizer", "do_lower_case": True}
    folder = write(vocab__txt=lines, tokenizer_config__json=config)
    ours, reference = load(folder), transformers.MPNetTokenizer.from_pretrained(folder)
    for text in [*texts, "The <mask> sat"]:
        assert list(ours.encode(text, "two").ids) == reference(text, "two").input_ids, text


def test_esm_agrees_with_transformers(write: Write, load: Load):
    vocabulary = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO", ".", "-", "<null_1>", "<mask>"]
    config = {"tokenizer_class": "EsmTokenizer"}
    folder = write(vocab__txt="\n".join(vocabulary), tokenizer_config__json=config)
    ours, reference = load(folder), transformers.EsmTokenizer.from_pretrained(folder)
    for text in ("MKTAYIAK", "MK <mask> AY", "MKJ", "mk"):
        assert list(ours.encode(text).ids) == reference(text).input_ids, text


def test_roformers_words_of_chinese_are_not_looked_for_and_this_is_said(write: Write, load: Load):
    vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n今\n天\n今天\nthe\n"
    folder = write(vocab__txt=vocabulary, tokenizer_config__json={"tokenizer_class": "RoFormerTokenizer"})
    tokenizer = load(folder)
    assert tokenizer.encode("今天 the").ids == (2, 4, 5, 7, 3)
    assert any("RoFormer cuts Chinese into words" in warning for warning in tokenizer.warnings)


def test_windows_line_ends_and_repeated_lines_are_read(write: Write, load: Load):
    folder = write(vocab__txt="[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nthe\r\ncat\r\nthe\r\n", tokenizer_config__json={})
    tokenizer = load(folder)
    assert tokenizer.encode("the cat").ids == (2, 6, 5, 3)
    assert "'the' more than once" in tokenizer.warnings[0]


def test_a_line_separator_can_be_a_token(write: Write, load: Load):
    folder = write(vocab__txt="[UNK]\n[CLS]\n[SEP]\n\u2028\nthe\n", tokenizer_config__json={"do_lower_case": True})
    assert load(folder).encode("the").ids == (1, 4, 2)


@pytest.mark.parametrize(("word", "kind"), [("The", "cased"), ("the", "uncased")])
def test_case_is_inferred_from_the_vocabulary_and_said_so(word: str, kind: str, write: Write, load: Load):
    tokenizer = load(write(vocab__txt=f"[UNK]\n[CLS]\n[SEP]\n{word}\n"))
    assert tokenizer.kind == f"vocab.txt (WordPiece, {kind})"
    assert "inferred" in tokenizer.warnings[0]
    assert tokenizer.encode("The").ids == (1, 3, 2)


def test_word_pieces_show_their_prefix_and_come_back_joined(write: Write, load: Load):
    tokenizer = load(write(vocab__txt="[UNK]\n[CLS]\n[SEP]\nplay\n##ing\n"))
    encoding = tokenizer.encode("playing")
    assert encoding.texts == ("[CLS]", "play", "##ing", "[SEP]")
    assert encoding.offsets == (None, (0, 4), (4, 7), None)
    assert tokenizer.decode(encoding.ids) == "playing"


def test_a_vocabulary_without_the_separator_is_refused(write: Write, load: Load):
    with pytest.raises(TokenizerError, match=r"vocab\.txt lacks the token \[SEP\]"):
        load(write(vocab__txt="[UNK]\n[CLS]\nthe\n"))
