"""Small vocabularies, trained here, in the files that checkpoints carry."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tokenizers import Tokenizer as Library
from tokenizers import models, pre_tokenizers, trainers

from core_model.tokenize import Tokenizer, load_tokenizer

SENTENCES = [
    "The cat sat on the mat and looked at the dog.",
    "A naïve reader asks: what does this head attend to?",
    "Numbers such as 3, 14 and 159 are tokens too.",
    "Le café est près de la gare, n'est-ce pas?",
    "don't, we'll, they're and I'm are split at the apostrophe",
    "Übung macht den Meister; Größe zählt nicht.",
] * 20

TEXTS = [
    "The cat sat on the mat.",
    "don't they're  double  spaces",
    " leading and trailing ",
    "naïve café \u2013 Größe",
    "smile 🙂 and 漢字",
    "tab\tand\nnew line",
    "",
    " ",
    "3.14159 (x, y) = [1]",
]


@pytest.fixture(scope="session")
def texts() -> list[str]:
    return TEXTS


def _bpe(prefix: list[str], *, suffix: str = "") -> tuple[dict[str, int], list[list[str]]]:
    word_end: dict[str, Any] = {"end_of_word_suffix": suffix} if suffix else {}
    library = Library(models.BPE(**word_end))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    trainer = trainers.BpeTrainer(
        vocab_size=400 + len(prefix),
        special_tokens=prefix,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        **word_end,
    )
    library.train_from_iterator(SENTENCES, trainer)
    model = json.loads(library.to_str())["model"]
    return model["vocab"], [merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"]]


@pytest.fixture(scope="session")
def bpe_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A folder with vocab.json, merges.txt and the given tokenizer_config.json."""

    def make(prefix: list[str], config: dict[str, object], *, suffix: str = "") -> Path:
        folder = tmp_path_factory.mktemp("bpe")
        vocabulary, merges = _bpe(prefix, suffix=suffix)
        (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        lines = "".join(" ".join(merge) + "\n" for merge in merges)
        (folder / "merges.txt").write_text("#version: 0.2\n" + lines, encoding="utf-8")
        (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
        return folder

    return make


@pytest.fixture(scope="session")
def gpt2_folder(bpe_folder: Callable[..., Path]) -> Path:
    return bpe_folder(["<|endoftext|>"], {"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>"})


@pytest.fixture(scope="session")
def wordpiece_vocabulary() -> list[str]:
    library = Library(models.WordPiece(unk_token="[UNK]"))
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    library.train_from_iterator([*SENTENCES, *(sentence.lower() for sentence in SENTENCES)], trainer)
    return sorted(library.get_vocab(), key=library.get_vocab().__getitem__)


@pytest.fixture(scope="session")
def piece_model() -> Callable[..., bytes]:
    """Train a sentencepiece model; keyword arguments go to its trainer."""

    def train(**options: Any) -> bytes:
        written = io.BytesIO()
        settings: dict[str, Any] = {
            "vocab_size": 160,
            "model_type": "unigram",
            "hard_vocab_limit": False,
            "minloglevel": 2,
        } | options
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(SENTENCES), model_writer=written, **settings)
        return written.getvalue()

    return train


@pytest.fixture(scope="session")
def llama_model(piece_model: Callable[..., bytes]) -> bytes:
    """Byte pair encoding with byte fallback, spaces kept."""
    return piece_model(
        model_type="bpe",
        vocab_size=420,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
    )


@pytest.fixture(scope="session")
def load() -> Callable[..., Tokenizer]:
    """Load the tokenizer of a folder that has one."""

    def load(folder: Path, *, model_type: str | None = None, vocab_size: int | None = None) -> Tokenizer:
        tokenizer = load_tokenizer(folder, model_type=model_type, vocab_size=vocab_size)
        assert tokenizer is not None
        return tokenizer

    return load


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write files (text, bytes, or JSON) into a fresh folder; "__" in a keyword stands for the dot of a name."""

    def into_folder(**files: object) -> Path:
        for name, content in files.items():
            path = tmp_path / name.replace("__", ".")
            if isinstance(content, bytes):
                path.write_bytes(content)
            elif isinstance(content, str):
                path.write_text(content, encoding="utf-8", newline="")
            else:
                path.write_text(json.dumps(content), encoding="utf-8")
        return tmp_path

    return into_folder
