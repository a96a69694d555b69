"""vocab.txt, one token a line: BERT's WordPiece and its relatives, and ESM's whole-token vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from core_model.tokenize import template
from core_model.tokenize.files import fault, read_lines
from core_model.tokenize.library import LibraryTokenizer, add_tokens, library_door
from core_model.tokenize.settings import Settings
from core_model.tokenize.template import Template
from core_model.tokenize.token_text import Spelling

_PREFIX = "##"


def load_vocab_txt(path: Path, settings: Settings, rows: int | None) -> LibraryTokenizer:
    """The tokenizer of a vocab.txt."""
    lines = read_lines(path)
    # The last of several equal lines gives the id, as in the original reader.
    vocabulary = {token: id for id, token in enumerate(lines)}
    warnings = _duplicates(path, lines)
    build = _esm if settings.family == "esm" else _wordpiece
    with library_door(path.name):
        library, kind, inferred = build(path, vocabulary, settings)
        outside = {token: id for token, id in settings.added.items() if token not in vocabulary}
        add_tokens(library, outside, special=settings.special, lstrip=settings.lstrip, source=path)
    return LibraryTokenizer(
        library, spelling=Spelling(), kind=kind, source=path, rows=rows, warnings=[*warnings, *inferred]
    )


def _wordpiece(path: Path, vocabulary: dict[str, int], settings: Settings) -> tuple[Library, str, Sequence[str]]:
    names = _names(settings)
    unknown = names["unk"]
    library = Library(models.WordPiece(vocabulary, unk_token=unknown, max_input_chars_per_word=100))
    lowercase, inferred = _lowercase(vocabulary, settings)
    chinese = settings.config.tokenize_chinese_chars
    library.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=True if chinese is None else chinese,
        strip_accents=settings.config.strip_accents,
        lowercase=lowercase,
    )
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece(prefix=_PREFIX, cleanup=True)
    around = template.roberta if settings.family == "mpnet" else template.bert
    special = {token: vocabulary[token] for token in (*names.values(), *settings.more_special) if token in vocabulary}
    lstrip = {names["mask"]} if settings.family == "mpnet" else settings.lstrip
    add_tokens(library, special, special=special.keys(), lstrip=lstrip, source=path)
    _surround(path, library, around(names["cls"], names["sep"]), vocabulary)
    if settings.family == "roformer":
        inferred = (*inferred, "RoFormer cuts Chinese into words first, which is not done: it is read by characters.")
    return library, f"vocab.txt (WordPiece, {'uncased' if lowercase else 'cased'})", inferred


def _esm(path: Path, vocabulary: dict[str, int], settings: Settings) -> tuple[Library, str, Sequence[str]]:
    """Every token of the vocabulary is found wherever it stands; what is left between them is unknown."""
    library = Library(models.WordLevel(vocabulary, unk_token=settings.name("unk", "<unk>")))
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"<cls>", "<pad>", "<eos>", "<unk>", "<mask>", *settings.special}
    tokens = {token: id for token, id in vocabulary.items() if token}
    add_tokens(library, tokens, special=special, source=path)
    cls, eos = settings.name("cls", "<cls>"), settings.name("eos", "<eos>")
    around = Template(single=f"{cls} $A {eos}", pair=f"{cls} $A {eos} $B {eos}")
    _surround(path, library, around, vocabulary)
    return library, "vocab.txt (whole tokens)", ()


def _names(settings: Settings) -> dict[str, str]:
    bert = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
    mpnet = {"unk": "[UNK]", "cls": "<s>", "sep": "</s>", "pad": "<pad>", "mask": "<mask>"}
    return (mpnet if settings.family == "mpnet" else bert) | dict(settings.names)


def _lowercase(vocabulary: dict[str, int], settings: Settings) -> tuple[bool, Sequence[str]]:
    if (stated := settings.config.do_lower_case) is not None:
        return stated, ()
    words = (token for token in vocabulary if not token.startswith(("[", "<")))
    lowercase = not any(character.isupper() for token in words for character in token)
    how = "no token has a capital letter, so text is put in lower case" if lowercase else "it has capital letters"
    return lowercase, (f"tokenizer_config.json does not say whether vocab.txt is cased; inferred: {how}.",)


def _duplicates(path: Path, lines: list[str]) -> list[str]:
    repeated = [token for token, count in Counter(lines).items() if count > 1]
    if not repeated:
        return []
    return [f"{path.name} lists {repeated[0]!r} more than once ({len(repeated)} such tokens); the last line counts."]


def _surround(path: Path, library: Library, around: Template, vocabulary: dict[str, int]) -> None:
    missing = [token for token in around.tokens() if token not in vocabulary]
    if missing:
        raise fault(
            path, f"lacks the token {missing[0]}, which stands around every text: name another in tokenizer_config.json"
        )
    library.post_processor = processors.TemplateProcessing(
        single=around.single,
        pair=around.pair,
        special_tokens=[(token, vocabulary[token]) for token in around.tokens()],
    )
