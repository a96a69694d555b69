"""Finding the tokenizer of a model folder."""

from __future__ import annotations

from pathlib import Path

from core_model.errors import TokenizerError
from core_model.tokenize.encoding import Tokenizer
from core_model.tokenize.files import is_tiktoken, present
from core_model.tokenize.native import NATIVE_FILE, load_native
from core_model.tokenize.settings import read_settings

_SENTENCE_PIECE_FILES = (
    "tokenizer.model",
    *(f"tokenizer.model.v{version}" for version in (7, 3, 2, 1)),  # Mistral's own, from newer to older
    "spiece.model",
    "sentencepiece.bpe.model",
    "spm.model",
    "sentencepiece.model",
)
_LLAMA_TYPES = ("llama", "mistralnative", "")
"""Whose tokenizer.model may be Llama 3's, in tiktoken's format."""

# The tokenizers and sentencepiece libraries are imported where a file needs them: this module is imported at start-up.


def load_tokenizer(folder: Path, *, model_type: str | None = None, vocab_size: int | None = None) -> Tokenizer | None:
    """The tokenizer in `folder`; None when it has no tokenizer files.

    tokenizer.json wins over the older, separate files. `model_type` (of config.json) helps to read those where they do
    not name their class. `vocab_size` is the number of rows of the model's embedding: `encode` refuses texts that need
    more.
    Raises TokenizerError, naming the file, when the files are broken or incomplete.
    """
    if present(folder, "tokenizer.json"):
        from core_model.tokenize.library import load_tokenizer_json

        return load_tokenizer_json(folder / "tokenizer.json", vocab_size)
    if present(folder, NATIVE_FILE):
        return load_native(folder / NATIVE_FILE, vocab_size)
    if present(folder, "tekken.json"):
        from core_model.tokenize.ranked import load_tekken

        return load_tekken(folder / "tekken.json", vocab_size)
    return _load_separate_files(folder, model_type, vocab_size)


def _load_separate_files(folder: Path, model_type: str | None, rows: int | None) -> Tokenizer | None:
    vocabulary, merges = present(folder, "vocab.json"), present(folder, "merges.txt")
    if vocabulary and merges:
        from core_model.tokenize.byte_pair import load_vocab_and_merges

        return load_vocab_and_merges(folder, read_settings(folder, model_type), rows)
    if present(folder, "source.spm") or present(folder, "target.spm"):
        from core_model.tokenize.translation import load_marian

        return load_marian(folder, read_settings(folder, model_type), rows)
    piece_files = [name for name in _SENTENCE_PIECE_FILES if present(folder, name)]
    if piece_files:
        return _load_sentence_piece(folder / piece_files[0], model_type, rows)
    if merges or vocabulary:
        found, lacking = ("merges.txt", "vocab.json") if merges else ("vocab.json", "merges.txt or source.spm")
        raise TokenizerError(
            f"The tokenizer in {folder} is incomplete: it has {found}, but no {lacking}. Download the missing file too."
        )
    if present(folder, "vocab.txt"):
        from core_model.tokenize.wordpiece import load_vocab_txt

        return load_vocab_txt(folder / "vocab.txt", read_settings(folder, model_type), rows)
    return None


def _load_sentence_piece(path: Path, model_type: str | None, rows: int | None) -> Tokenizer:
    settings = read_settings(path.parent, model_type)
    if settings.family == "m2m100":
        from core_model.tokenize.translation import load_m2m100

        return load_m2m100(path, settings, rows)
    if settings.family in _LLAMA_TYPES and is_tiktoken(path):
        from core_model.tokenize.ranked import load_llama3

        return load_llama3(path, rows)
    from core_model.tokenize.sentence_piece_families import load_sentence_piece

    return load_sentence_piece(path, settings, rows)
