"""Ranked vocabularies: tekken.json and Llama 3's tokenizer.model, against tiktoken's own rule applied by hand."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import regex

from core_model.errors import TokenizerError
from core_model.tokenize import Tokenizer
from core_model.tokenize.token_text import BYTE_OF_CHARACTER
from tests.core_model.tokenize.conftest import TEXTS, _bpe

Load = Callable[..., Tokenizer]
Write = Callable[..., Path]

PATTERN = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
N_CONTROL = 20
HARD = [
    *TEXTS,
    "👩‍👩‍👧 naïve é\r\n\u05e9\u05dc\u05d5\u05dd\x00 漢字",
    "x" * 3000,
    "12345 67",
    "We'LL don'T",
    "   a   \n\n  b ",
]


@pytest.fixture(scope="module")
def ranks() -> dict[bytes, int]:
    """Bytes first, then what a training of byte pair encoding merged, in its order."""
    _, merges = _bpe([])
    tokens = [bytes(BYTE_OF_CHARACTER[character] for character in left + right) for left, right in merges]
    return {token: rank for rank, token in enumerate([*(bytes([byte]) for byte in range(256)), *tokens])}


def by_hand(text: str, ranks: dict[bytes, int], pattern: str) -> list[int]:
    """tiktoken's rule: of all neighbours in a word, join those whose bytes have the lowest rank, while any have one."""
    found: list[int] = []
    for word in regex.findall(pattern, text):
        parts = [bytes([byte]) for byte in word.encode()]
        while True:
            joined = [(ranks.get(parts[i] + parts[i + 1], 10**9), i) for i in range(len(parts) - 1)]
            best, at = min(joined, default=(10**9, 0))
            if best == 10**9:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        found += [ranks[part] for part in parts]
    return found


def tekken(ranks: dict[bytes, int], **changes: Any) -> dict[str, Any]:
    """A tekken.json of its later versions, which list their control tokens."""
    config = {
        "pattern": PATTERN,
        "num_vocab_tokens": len(ranks),
        "default_vocab_size": N_CONTROL + len(ranks) - 5,
        "default_num_special_tokens": N_CONTROL,
        "version": "v7",
    }
    control = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    return {
        "config": {**config, **changes},
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": token.decode("latin-1")}
            for token, rank in ranks.items()
        ],
        "special_tokens": [{"rank": i, "token_str": name, "is_control": True} for i, name in enumerate(control)],
    }


def first(ranks: dict[bytes, int], n: int) -> dict[bytes, int]:
    return {token: rank for token, rank in ranks.items() if rank < n}


@pytest.mark.parametrize("text", HARD, ids=lambda text: repr(text)[:20])
def test_tekken_joins_the_lowest_ranks_first_behind_its_control_tokens(
    text: str, ranks: dict[bytes, int], write: Write, load: Load
) -> None:
    tokenizer = load(write(tekken__json=tekken(ranks)))
    want = [N_CONTROL + rank for rank in by_hand(text, first(ranks, len(ranks) - 5), PATTERN)]
    encoding = tokenizer.encode(text)
    assert list(encoding.ids) == [1, *want]
    assert tokenizer.decode(encoding.ids) == text


def test_control_tokens_that_the_file_lists_can_be_typed(ranks: dict[bytes, int], write: Write, load: Load) -> None:
    encoding = load(write(tekken__json=tekken(ranks))).encode("[INST] the [/INST]")
    assert (encoding.ids[0], encoding.ids[1], encoding.ids[-1]) == (1, 3, 4)


def test_older_files_without_a_list_begin_with_the_same_three(
    ranks: dict[bytes, int], write: Write, load: Load
) -> None:
    document = tekken(ranks)
    del document["special_tokens"]
    tokenizer = load(write(tekken__json=document))
    assert tokenizer.encode("the").ids[0] == 1
    assert (tokenizer.token_text(2), tokenizer.token_text(7)) == ("</s>", "<id 7>")


def test_parts_of_a_character_are_shown_as_such(ranks: dict[bytes, int], write: Write, load: Load) -> None:
    encoding = load(write(tekken__json=tekken(ranks))).encode("a🙂")
    assert encoding.texts[-4:] == tuple(f"🙂 {number}/4" for number in (1, 2, 3, 4))
    assert set(encoding.offsets[-4:]) == {(1, 2)}


@pytest.mark.parametrize("text", HARD, ids=lambda text: repr(text)[:20])
def test_llama_3_numbers_its_control_tokens_behind_the_ranks(
    text: str, ranks: dict[bytes, int], write: Write, load: Load
) -> None:
    lines = "".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items())
    tokenizer = load(write(tokenizer__model=lines), model_type="llama")
    encoding = tokenizer.encode(text)
    assert list(encoding.ids) == [len(ranks), *by_hand(text, ranks, LLAMA_PATTERN)]
    assert tokenizer.token_text(len(ranks) + 9) == "<|eot_id|>"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda document: document["config"].pop("pattern"), "pattern"),
        (lambda document: document["config"].update(pattern="(("), "refused by|failed"),
        (lambda document: document["config"].update(default_vocab_size=10**6), "default_vocab_size of 1000000"),
        (lambda document: document["config"].update(default_num_special_tokens=10**7), "control tokens"),
        (lambda document: document["vocab"][3].update(token_bytes="%%"), "is not base64"),
        (lambda document: document["vocab"][3].update(token_bytes=""), "a token of 0 bytes"),
        (lambda document: document["vocab"][3].update(token_bytes="AAAA" * 999), "a token of 2997 bytes"),
        (lambda document: document["vocab"][3].update(rank=4), "does not rank every byte"),
        (lambda document: document["vocab"][3].update(rank=-1), "does not rank every byte"),
        (lambda document: document["special_tokens"].pop(1), "lists no <s>"),
    ],
)
def test_a_broken_tekken_is_named_with_what_is_wrong(
    change: Callable[[dict[str, Any]], Any], told: str, ranks: dict[bytes, int], write: Write, load: Load
) -> None:
    document = tekken(ranks)
    change(document)
    with pytest.raises(TokenizerError, match=told):
        load(write(tekken__json=document))


def test_a_broken_line_of_tiktoken_is_named(write: Write, load: Load) -> None:
    with pytest.raises(TokenizerError, match="on line 2"):
        load(write(tokenizer__model="IQ== 0\nIg==\n"), model_type="llama")


@pytest.mark.parametrize("version", ["v1", "v3"])
def test_mistrals_numbered_sentencepiece_models_are_read(
    version: str, llama_model: bytes, tmp_path: Path, load: Load
) -> None:
    (tmp_path / f"tokenizer.model.{version}").write_bytes(llama_model)
    assert load(tmp_path, model_type="mistral_native").encode("The cat").ids[0] == 1
