"""How the families number their sentencepiece pieces and which control tokens they use. One row of FAMILIES each.

The numbering of the originals: transformers' tokenization_<family>.py and, for XLM-R and mBART, fairseq's dictionary.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core_model.tokenize import template
from core_model.tokenize.encoding import Tokenizer
from core_model.tokenize.files import fault
from core_model.tokenize.sentence_piece import (
    Cleaned,
    PieceIds,
    Rules,
    SentencePieceTokenizer,
    read_model,
    unchanged,
)
from core_model.tokenize.settings import Settings
from core_model.tokenize.template import Template
from core_model.wording import shown

Numbering = Callable[[Sequence[str], Settings], PieceIds]
_DEFAULTS = {"bos": "<s>", "eos": "</s>", "cls": "[CLS]", "sep": "[SEP]"}


@dataclass(frozen=True, kw_only=True)
class Family:
    """One family's use of its sentencepiece model."""

    numbering: Numbering
    around: Callable[[Settings], Template]
    target: Callable[[Settings], Template] | None = None
    """Around the decoder's text, where that differs."""
    cleaning: Callable[[Settings], Callable[[str], Cleaned]] = lambda settings: unchanged


def load_sentence_piece(path: Path, settings: Settings, rows: int | None) -> SentencePieceTokenizer:
    """The tokenizer of a lone .model file."""
    model = read_model(path)
    if settings.family and settings.family not in FAMILIES:
        raise fault(
            path,
            f"belongs to {shown(settings.family)}, whose numbering of pieces is not known here: put the tokenizer.json "
            "of the model beside it",
        )
    warnings = [] if settings.family else [f"{path.name} comes without the name of its family; it is read as Llama's."]
    family = FAMILIES[settings.family or "llama"]
    ids = _with_added(family.numbering(model.pieces, settings), settings)

    def side(around: Template, target: Tokenizer | None) -> SentencePieceTokenizer:
        rules = Rules(
            around=around,
            special=settings.special | frozenset(around.tokens()),
            typed=_typed(ids, settings),
            clean=family.cleaning(settings),
        )
        kind = f"{path.name} (sentencepiece)"
        return SentencePieceTokenizer(
            model, ids=ids, rules=rules, kind=kind, source=path, rows=rows, warnings=warnings, target=target
        )

    return side(family.around(settings), side(family.target(settings), None) if family.target else None)


def _typed(ids: PieceIds, settings: Settings) -> frozenset[str]:
    """Listed tokens, and those a family has beside its pieces (sentinels, language codes, the mask)."""
    in_pieces = set(ids.id_of_piece)
    roles = {settings.names.get(role) for role in ("bos", "eos", "unk", "pad", "cls", "sep")} | set(_DEFAULTS.values())
    beside = {token for id, token in ids.token_of.items() if id not in in_pieces} - roles
    return settings.declared | beside


def _with_added(ids: PieceIds, settings: Settings) -> PieceIds:
    added = {id: token for token, id in settings.added.items() if token not in ids.id_of}
    return PieceIds(token_of={**ids.token_of, **added}, id_of_piece=ids.id_of_piece)


def _direct(pieces: Sequence[str], settings: Settings) -> PieceIds:
    return PieceIds(token_of=dict(enumerate(pieces)), id_of_piece=range(len(pieces)))


def _t5(pieces: Sequence[str], settings: Settings) -> PieceIds:
    """Raffel et al. 2020: the sentinels <extra_id_0>, <extra_id_1> ... count down from the last id."""
    extra = 100 if settings.config.extra_ids is None else max(0, min(settings.config.extra_ids, 10_000))
    sentinels = [f"<extra_id_{number}>" for number in reversed(range(extra))]
    return PieceIds(token_of=dict(enumerate([*pieces, *sentinels])), id_of_piece=range(len(pieces)))


def _deberta_v2(pieces: Sequence[str], settings: Settings) -> PieceIds:
    """The mask follows the pieces."""
    mask = settings.name("mask", "[MASK]")
    tokens = [*pieces] if mask in pieces else [*pieces, mask]
    return PieceIds(token_of=dict(enumerate(tokens)), id_of_piece=range(len(pieces)))


def _fairseq(pieces: Sequence[str], settings: Settings, *, mask: bool = True) -> PieceIds:
    """fairseq's dictionary: <s> <pad> </s> <unk>, then the pieces from the fourth on, then languages, then the mask."""
    languages = [token for token in settings.more_special if token not in settings.names.values()]
    last = [settings.name("mask", "<mask>")] if mask else []
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *pieces[3:], *languages, *last]
    id_of_piece = [3, 0, 2, *range(4, 4 + len(pieces) - 3)]
    return PieceIds(token_of=dict(enumerate(tokens)), id_of_piece=id_of_piece)


def _camembert(pieces: Sequence[str], settings: Settings) -> PieceIds:
    """Martin et al. 2019: five entries in front, of which two are used, and the mask at the end."""
    first = ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"]
    tokens = [*first, *pieces[1:], settings.name("mask", "<mask>")]
    return PieceIds(token_of=dict(enumerate(tokens)), id_of_piece=[3, *range(5, 4 + len(pieces))])


def _pegasus(pieces: Sequence[str], settings: Settings) -> PieceIds:
    """Zhang et al. 2020: pad, end, two masks, 101 unused, then the pieces from the third on."""
    offset = 103 if settings.config.offset is None else max(4, min(settings.config.offset, 10_000))
    first = ["<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{number}>" for number in range(2, offset))]
    tokens = [*first, *pieces[2:]]
    return PieceIds(token_of=dict(enumerate(tokens)), id_of_piece=[0, 1, *range(offset + 2, offset + len(pieces))])


def _role(settings: Settings, role: str) -> str:
    return settings.name(role, _DEFAULTS[role])


def _llama_around(settings: Settings) -> Template:
    stated = settings.config.add_bos_token
    bos = _role(settings, "bos") if stated is None or stated else None
    return template.begun(bos, _role(settings, "eos") if settings.config.add_eos_token else None)


def _bert_around(settings: Settings) -> Template:
    return template.bert(_role(settings, "cls"), _role(settings, "sep"))


def _ended(settings: Settings) -> Template:
    return template.ended(_role(settings, "eos"))


def _roberta_around(settings: Settings) -> Template:
    return template.roberta(settings.name("cls", "<s>"), settings.name("sep", "</s>"))


def _language_last(settings: Settings, language: str | None) -> Template:
    """mBART (25 languages): the language follows the end token."""
    code = language or "en_XX"
    return Template(single=f"$A </s> {code}", pair=f"$A $B </s> {code}")


def _language_first(settings: Settings, language: str | None, *, default: str = "en_XX") -> Template:
    """mBART-50 and NLLB: the language comes first."""
    code = language or default
    return Template(single=f"{code} $A </s>", pair=f"{code} $A $B </s>")


def clean_text(text: str, *, lowercase: bool, strip_accents: bool, plain_quotes: bool) -> Cleaned:
    """`text` in lower case, without accents, with ``quotes'' made plain, as asked; character by character."""
    changed = [
        (character, index)
        for index, old in _quotes_replaced(text, plain_quotes)
        for character in _changed(old, lowercase=lowercase, strip_accents=strip_accents)
    ]
    return Cleaned(text="".join(character for character, _ in changed), origins=[index for _, index in changed])


def _quotes_replaced(text: str, plain_quotes: bool) -> Iterator[tuple[int, str]]:
    index = 0
    while index < len(text):
        if plain_quotes and text[index : index + 2] in ("``", "''"):
            yield index, '"'
            index += 2
        else:
            yield index, text[index]
            index += 1


def _changed(character: str, *, lowercase: bool, strip_accents: bool) -> str:
    if strip_accents:
        parts = unicodedata.normalize("NFKD", character)
        character = "".join(part for part in parts if not unicodedata.combining(part))
    return character.lower() if lowercase else character


def _albert_cleaning(settings: Settings) -> Callable[[str], Cleaned]:
    lower, keep = settings.config.do_lower_case, settings.config.keep_accents
    return partial(clean_text, lowercase=lower is None or lower, strip_accents=not keep, plain_quotes=True)


def _deberta_cleaning(settings: Settings) -> Callable[[str], Cleaned]:
    if not settings.config.do_lower_case:
        return unchanged
    return partial(clean_text, lowercase=True, strip_accents=False, plain_quotes=False)


_LLAMA = Family(numbering=_direct, around=_llama_around)
_T5 = Family(numbering=_t5, around=_ended)
_XLMR = Family(numbering=_fairseq, around=_roberta_around)

FAMILIES = {
    **dict.fromkeys(
        ("llama", "codellama", "mistral", "mixtral", "mistralnative", "gemma", "gemma2", "gemma3text", "phi3"), _LLAMA
    ),
    **dict.fromkeys(("t5", "mt5", "umt5"), _T5),
    **dict.fromkeys(("xlmroberta", "xlmr"), _XLMR),
    "albert": Family(numbering=_direct, around=_bert_around, cleaning=_albert_cleaning),
    "debertav2": Family(numbering=_deberta_v2, around=_bert_around, cleaning=_deberta_cleaning),
    "pegasus": Family(numbering=_pegasus, around=_ended),
    "mbart": Family(
        numbering=_fairseq,
        around=lambda settings: _language_last(settings, settings.config.src_lang),
        target=lambda settings: _language_last(settings, settings.config.tgt_lang),
    ),
    "mbart50": Family(
        numbering=_fairseq,
        around=lambda settings: _language_first(settings, settings.config.src_lang),
        target=lambda settings: _language_first(settings, settings.config.tgt_lang),
    ),
    "nllb": Family(
        numbering=_fairseq,
        around=lambda settings: _language_first(settings, settings.config.src_lang, default="eng_Latn"),
        target=lambda settings: _language_first(settings, settings.config.tgt_lang, default="eng_Latn"),
    ),
    "camembert": Family(numbering=_camembert, around=_roberta_around),
    "xglm": Family(
        numbering=partial(_fairseq, mask=False),
        around=lambda _: Template(single="</s> $A", pair="</s> $A </s> </s> $B"),
    ),
}
