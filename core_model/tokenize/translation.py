"""Translation models whose pieces are numbered by a vocab.json: Marian (source.spm, target.spm) and M2M-100."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core_model.errors import TokenizerError
from core_model.tokenize.files import fault, present, read_json
from core_model.tokenize.sentence_piece import PieceIds, Rules, SentencePieceTokenizer, read_model
from core_model.tokenize.settings import Settings
from core_model.tokenize.template import Template


def load_marian(folder: Path, settings: Settings, rows: int | None) -> SentencePieceTokenizer:
    """Marian: each side has its own sentencepiece model; the vocabulary is shared unless target_vocab.json exists."""
    for name in ("source.spm", "target.spm", "vocab.json"):
        if not present(folder, name):
            raise TokenizerError(
                f"The tokenizer of a Marian model needs {name}, which {folder} lacks: download it too."
            )
    target_names = "target_vocab.json" if settings.config.separate_vocabs else "vocab.json"
    target = _marian_side(folder, "target.spm", target_names, settings, rows, None)
    return _marian_side(folder, "source.spm", "vocab.json", settings, rows, target)


def _marian_side(
    folder: Path,
    model_name: str,
    vocabulary_name: str,
    settings: Settings,
    rows: int | None,
    target: SentencePieceTokenizer | None,
) -> SentencePieceTokenizer:
    vocabulary = read_json(folder / vocabulary_name, dict[str, int])
    model = read_model(folder / model_name)
    ids = _numbered(model.pieces, vocabulary, settings, folder / vocabulary_name)
    end = settings.name("eos", "</s>")
    special = frozenset({end, settings.name("pad", "<pad>"), *settings.special})
    around = Template(single=f"$A {end}", pair=f"$A $B {end}")
    languages = frozenset(token for token in vocabulary if token.startswith(">>") and token.endswith("<<"))
    return SentencePieceTokenizer(
        model,
        ids=ids,
        rules=Rules(around=around, special=special | languages, typed=settings.declared, leading=languages),
        kind=f"{model_name} + {vocabulary_name} (sentencepiece, Marian)",
        source=folder / model_name,
        rows=rows,
        target=target,
    )


def load_m2m100(path: Path, settings: Settings, rows: int | None) -> SentencePieceTokenizer:
    """M2M-100: one vocabulary, the languages after it; a text begins with its language."""
    vocabulary_path = path.parent / "vocab.json"
    vocabulary = read_json(vocabulary_path, dict[str, int])
    languages = [token for token in settings.more_special if token.startswith("__") and token not in vocabulary]
    if not languages:
        raise fault(
            path.parent / "special_tokens_map.json",
            "does not list M2M-100's languages in additional_special_tokens: use the model's own file",
        )
    numbered = vocabulary | {token: len(vocabulary) + number for number, token in enumerate(languages)}
    model = read_model(path)
    ids = _numbered(model.pieces, numbered, settings, vocabulary_path)

    def side(language: str | None, target: SentencePieceTokenizer | None) -> SentencePieceTokenizer:
        code = f"__{language or 'en'}__"
        around = Template(single=f"{code} $A </s>", pair=f"{code} $A $B </s>")
        return SentencePieceTokenizer(
            model,
            ids=ids,
            rules=Rules(
                around=around,
                special=frozenset({"<s>", "</s>", "<pad>", *languages, *settings.special}),
                typed=settings.declared,
            ),
            kind=f"{path.name} + vocab.json (sentencepiece, M2M-100)",
            source=path,
            rows=rows,
            target=target,
        )

    return side(settings.config.src_lang, side(settings.config.tgt_lang, None))


def _numbered(pieces: Sequence[str], vocabulary: dict[str, int], settings: Settings, path: Path) -> PieceIds:
    """Pieces looked up in the vocabulary; those it lacks are the unknown token."""
    unknown = settings.name("unk", "<unk>")
    if unknown not in vocabulary:
        raise fault(path, f"lacks the unknown token {unknown}: use the model's own file")
    tokens = vocabulary | {token: id for token, id in settings.added.items() if token not in vocabulary}
    return PieceIds(
        token_of={id: token for token, id in tokens.items()},
        id_of_piece=[vocabulary.get(piece, vocabulary[unknown]) for piece in pieces],
    )
