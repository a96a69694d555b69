"""Texts that tokenizers stumble over, held against transformers reading the same files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers

from core_model.tokenize import Tokenizer

Load = Callable[..., Tokenizer]
Write = Callable[..., Path]

HARD = {
    "joined emoji": "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001f1e9\U0001f1ea",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u202eabc\u202c \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "combining marks": "e\u0301 A\u030a n\u0303 Z\u0351\u036b \u0300 alone",
    "line ends": "line\r\nnext\rold\n\n \x85 \u2028 \u2029 end",
    "zero bytes": "nul\x00byte \x01\x02 \x7f",
    "compatibility": "\ufb01 ligature \u2460 \u00bd \u2167 \u2122 \u212b",
    "spaces": "  \t\u00a0\u2003\u3000 spaces \u200b\u200d\ufeff \u00ad ",
    "a long word": "x" * 5000,
    "words about the longest": " ".join("a" * n for n in (99, 100, 101, 250)),
    "no spaces between words": "\u6f22\u5b57\u304b\u306a\u4ea4\u3058\u308a\u6587 \ud55c\uad6d\uc5b4 \u4e2d\u6587",
    "cases": "\u0130stanbul \u0131 \u00df \u1e9e \u03c2 \u03a3 NA\u00cfVE CAF\u00c9",
    "quotes": "don''t ``quoted'' \u2018curly\u2019 's 'S \u2019s I'LL",
    "edges of planes": "\ud7ff\ue000\uffff\U0010ffff",
    "digits": "1e-5 3.14159 1,000,000 \u0663\u0664\u0664 \u096a\u096b",
    "code": "def f(x):\n    return x  # tab\t\n",
    "nothing": "",
    "200 000 characters": ("The cat sat on the mat, na\u00efve \u6f22\u5b57 \U0001f642 don't! " * 5000)[:200_000],
}
CONTROL = "[MASK] [SEP][CLS] [UNK] <mask></s> <s> <unk> <pad> <|endoftext|> <|startoftext|>"
"""Read as themselves where the files list them."""

FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
OPT = {"bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>", "pad_token": "<pad>", "add_bos_token": True}
BYTE_PAIRS: dict[str, tuple[str, list[str], dict[str, Any], str]] = {
    "gpt2": ("GPT2Tokenizer", ["<|endoftext|>"], {}, ""),
    "gpt2 with a space in front": ("GPT2Tokenizer", ["<|endoftext|>"], {"add_prefix_space": True}, ""),
    "gpt-neox": ("GPTNeoXTokenizer", ["<|endoftext|>"], {}, ""),
    "codegen": ("CodeGenTokenizer", ["<|endoftext|>"], {}, ""),
    "qwen2": ("Qwen2Tokenizer", ["<|endoftext|>"], {}, ""),
    "opt": ("GPT2Tokenizer", ["<pad>", "</s>", "<unk>"], OPT, ""),
    "roberta": ("RobertaTokenizer", FAIRSEQ, {}, ""),
    "roberta with a space in front": ("RobertaTokenizer", FAIRSEQ, {"add_prefix_space": True}, ""),
    "bart": ("BartTokenizer", FAIRSEQ, {}, ""),
    "clip": ("CLIPTokenizer", ["<|startoftext|>", "<|endoftext|>"], {}, "</w>"),
    "openai-gpt": ("OpenAIGPTTokenizer", ["<unk>"], {}, "</w>"),
}
WORD_PIECES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert cased": ("BertTokenizer", {"do_lower_case": False}),
    "bert uncased": ("BertTokenizer", {"do_lower_case": True}),
    "bert uncased with accents": ("BertTokenizer", {"do_lower_case": True, "strip_accents": False}),
    "bert cased without accents": ("BertTokenizer", {"do_lower_case": False, "strip_accents": True}),
    "bert of whole Chinese words": ("BertTokenizer", {"do_lower_case": True, "tokenize_chinese_chars": False}),
    "distilbert": ("DistilBertTokenizer", {"do_lower_case": True}),
    "electra": ("ElectraTokenizer", {"do_lower_case": True}),
}


def assert_agrees(folder: Path, class_name: str, load: Load, more: dict[str, str]) -> None:
    """Alone and in a pair, every text has the ids of the library's tokenizer, and texts that can be read."""
    ours, reference = load(folder), getattr(transformers, class_name).from_pretrained(folder)
    for name, text in (HARD | more).items():
        encoding = ours.encode(text)
        assert list(encoding.ids) == reference(text).input_ids, name
        assert list(ours.encode(text, "two").ids) == reference(text, "two").input_ids, name
        assert "\ufffd" not in "".join(encoding.texts), name


@pytest.mark.parametrize("case", BYTE_PAIRS)
def test_byte_pairs_agree_with_transformers(case: str, bpe_folder: Callable[..., Path], load: Load) -> None:
    class_name, prefix, config, suffix = BYTE_PAIRS[case]
    folder = bpe_folder(prefix, {"tokenizer_class": class_name, **config}, suffix=suffix)
    assert_agrees(folder, class_name, load, {})


def test_tokens_of_the_older_companion_files_agree_with_transformers(
    bpe_folder: Callable[..., Path], load: Load
) -> None:
    """added_tokens.json numbers them, special_tokens_map.json says which are control tokens."""
    folder = bpe_folder(["<|endoftext|>"], {"tokenizer_class": "GPT2Tokenizer"})
    size = load(folder).vocab_size
    added = {"<|pad|>": size, "<|turn|>": size + 1, "word": size + 2}
    names = {"pad_token": "<|pad|>", "eos_token": "<|endoftext|>", "additional_special_tokens": ["<|turn|>"]}
    (folder / "added_tokens.json").write_text(json.dumps(added), encoding="utf-8")
    (folder / "special_tokens_map.json").write_text(json.dumps(names), encoding="utf-8")
    assert_agrees(folder, "GPT2Tokenizer", load, {})
    ours, reference = load(folder), transformers.GPT2Tokenizer.from_pretrained(folder)
    text = "a<|turn|> the word<|pad|>, <|endoftext|>words"
    assert list(ours.encode(text).ids) == reference(text).input_ids
    assert size + 1 in ours.encode(text).ids


@pytest.mark.parametrize("case", WORD_PIECES)
def test_word_pieces_agree_with_transformers(
    case: str, wordpiece_vocabulary: list[str], write: Write, load: Load
) -> None:
    class_name, config = WORD_PIECES[case]
    folder = write(
        vocab__txt="\n".join([*wordpiece_vocabulary, "\u6f22", "\u5b57"]) + "\n",
        tokenizer_config__json={"tokenizer_class": class_name, **config},
    )
    assert_agrees(folder, class_name, load, {"control tokens": CONTROL})


def test_sentencepiece_takes_them_all(llama_model: bytes, write: Write, load: Load) -> None:
    """With byte fallback nothing is lost, and no part of a character is shown as a broken one."""
    tokenizer = load(write(tokenizer__model=llama_model), model_type="llama")
    for name, text in HARD.items():
        encoding = tokenizer.encode(text)
        assert "\ufffd" not in "".join(encoding.texts), name
        if "\x00" not in text:
            assert tokenizer.decode(encoding.ids) == text, name


def test_an_emoji_over_three_tokens_shows_its_three_parts(write: Write, load: Load) -> None:
    """Its first two bytes are one token, the others one each."""
    from core_model.tokenize.token_text import BYTE_OF_CHARACTER

    spelled = {byte: character for character, byte in BYTE_OF_CHARACTER.items()}
    first, second, *_ = (spelled[byte] for byte in "\U0001f642".encode())
    vocabulary = {character: number for number, character in enumerate(spelled.values())} | {first + second: 256}
    folder = write(
        vocab__json=vocabulary,
        merges__txt=f"{first} {second}\n",
        tokenizer_config__json={"tokenizer_class": "GPT2Tokenizer"},
    )
    encoding = load(folder).encode("a\U0001f642")
    assert encoding.texts == ("a", *(f"\U0001f642 {part}/3" for part in (1, 2, 3)))
    assert encoding.offsets == ((0, 1), (1, 2), (1, 2), (1, 2))
