"""Marian and M2M-100, held against transformers reading the same folder."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import transformers
from sentencepiece import SentencePieceProcessor

from core_model.errors import TokenizerError
from core_model.tokenize import Tokenizer

Load = Callable[..., Tokenizer]
Write = Callable[..., Path]
Train = Callable[..., bytes]


def spelled(*models: bytes) -> dict[str, int]:
    """A shared vocabulary of some of the models' pieces; the others are unknown."""
    found: list[str] = ["</s>", "<unk>", ">>fra<<"]
    for model in models:
        processor = SentencePieceProcessor(model_proto=model)
        found += [processor.id_to_piece(number) for number in range(3, processor.get_piece_size()) if number % 7]
    return {token: number for number, token in enumerate(dict.fromkeys([*found, "<pad>"]))}


@pytest.fixture
def marian_folder(piece_model: Train, write: Write) -> Path:
    source, target = piece_model(), piece_model(vocab_size=120)
    return write(
        source__spm=source,
        target__spm=target,
        vocab__json=spelled(source, target),
        tokenizer_config__json={"tokenizer_class": "MarianTokenizer", "eos_token": "</s>", "pad_token": "<pad>"},
    )


def test_marian_agrees_with_transformers_on_both_sides(marian_folder: Path, texts: list[str], load: Load):
    ours = load(marian_folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends sacremoses, which it does not use here
        reference = transformers.MarianTokenizer.from_pretrained(marian_folder)
    for text in [*texts, ">>fra<< The cat"]:
        assert list(ours.encode(text).ids) == reference(text).input_ids, text
        assert list(ours.encode_target(text).ids) == reference(text_target=text).input_ids, text
    assert list(ours.encode("The", "cat").ids) == reference("The", "cat").input_ids


def test_marian_target_reads_its_own_ids(marian_folder: Path, load: Load):
    target = load(marian_folder).target
    text = "the mat"
    assert target.kind.startswith("target.spm")
    assert target.target is target
    assert "".join(target.encode(text).texts) == " " + text + "</s>"


def test_marian_without_one_side_names_the_missing_file(marian_folder: Path, load: Load):
    (marian_folder / "target.spm").unlink()
    with pytest.raises(TokenizerError, match=r"needs target\.spm"):
        load(marian_folder)


def test_m2m100_agrees_with_transformers(piece_model: Train, texts: list[str], write: Write, load: Load):
    model = piece_model()
    processor = SentencePieceProcessor(model_proto=model)
    tokens = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        *(processor.id_to_piece(n) for n in range(3, processor.get_piece_size())),
    ]
    codes = transformers.models.m2m_100.tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["m2m100"]
    config = {
        "tokenizer_class": "M2M100Tokenizer",
        "src_lang": "en",
        "tgt_lang": "fr",
        "additional_special_tokens": [f"__{code}__" for code in codes],
    }
    folder = write(
        sentencepiece__bpe__model=model,
        vocab__json={token: number for number, token in enumerate(tokens)},
        tokenizer_config__json=config,
    )
    ours, reference = load(folder), transformers.M2M100Tokenizer.from_pretrained(folder)
    for text in texts:
        assert list(ours.encode(text).ids) == reference(text).input_ids, text
        assert list(ours.encode_target(text).ids) == reference(text_target=text).input_ids, text


def test_m2m100_without_its_languages_says_what_is_missing(piece_model: Train, write: Write, load: Load):
    config = {"tokenizer_class": "M2M100Tokenizer"}
    files = {"vocab__json": {"<unk>": 0}, "tokenizer_config__json": config}
    with pytest.raises(TokenizerError, match="additional_special_tokens"):
        load(write(sentencepiece__bpe__model=piece_model(), **files))


def test_a_vocabulary_without_the_unknown_token_is_refused(marian_folder: Path, load: Load):
    (marian_folder / "vocab.json").write_text(json.dumps({"</s>": 0}), encoding="utf-8")
    with pytest.raises(TokenizerError, match="lacks the unknown token <unk>"):
        load(marian_folder)
