"""vocab.json + merges.txt: byte pair encoding as GPT-2, RoBERTa, CLIP, GPT-1, DeBERTa and Qwen2 write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Library

from core_model.tokenize import template
from core_model.tokenize.files import fault, read_json, read_lines
from core_model.tokenize.library import LibraryTokenizer, add_tokens, library_door
from core_model.tokenize.settings import Settings
from core_model.tokenize.template import Template
from core_model.tokenize.token_text import Spelling

Vocabulary = dict[str, int]
Merges = list[tuple[str, str]]

_BYTE_LEVEL = Spelling(byte_level=True)


@dataclass(frozen=True, kw_only=True)
class _Dialect:
    """One way of writing byte pair encoding."""

    name: str
    build: Callable[[Vocabulary, Merges, Settings], Library]
    around: Callable[[Settings], Template]
    spelling: Spelling = _BYTE_LEVEL
    trim_spaces: bool = False
    """Whether a token's offsets leave out its leading space."""
    mask: str = ""
    """The mask token of the original release."""


def load_vocab_and_merges(folder: Path, settings: Settings, rows: int | None) -> LibraryTokenizer:
    """The tokenizer of a vocab.json and its merges.txt."""
    path = folder / "vocab.json"
    vocabulary = read_json(path, Vocabulary)
    merges = _read_merges(folder / "merges.txt")
    dialect, inferred = _choose(settings, vocabulary)
    around = dialect.around(settings)
    known = vocabulary | dict(settings.added)
    missing = [token for token in around.tokens() if token not in known]
    if missing:
        raise fault(
            path, f"lacks the token {missing[0]}, which stands around every text: name another in tokenizer_config.json"
        )
    with library_door("vocab.json and merges.txt"):
        library = dialect.build(vocabulary, merges, settings)
        mask = settings.name("mask", dialect.mask)
        # Read as themselves when typed: the tokens around a text, the mask, and those the files list.
        typed = {token: known[token] for token in (*around.tokens(), mask, *settings.declared) if token in known}
        special = settings.special | {*around.tokens(), mask}
        add_tokens(library, typed, special=special, lstrip=settings.lstrip, source=path)
        _surround(library, dialect, around, known, prefix_space=bool(settings.config.add_prefix_space))
    kind = f"vocab.json + merges.txt ({dialect.name})"
    return LibraryTokenizer(library, spelling=dialect.spelling, kind=kind, source=path, rows=rows, warnings=inferred)


def _read_merges(path: Path) -> Merges:
    merges: Merges = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        pair = line.split(" ")
        if len(pair) != 2:
            raise fault(
                path, f"has {line[:40]!r} on line {number}, not two tokens with a space between: download it again"
            )
        merges.append((pair[0], pair[1]))
    return merges


def _surround(library: Library, dialect: _Dialect, around: Template, known: Vocabulary, *, prefix_space: bool) -> None:
    steps: list[processors.PostProcessor] = [
        processors.ByteLevel(add_prefix_space=prefix_space, trim_offsets=dialect.trim_spaces)
    ]
    if around != template.PLAIN:
        tokens = [(token, known[token]) for token in around.tokens()]
        steps.append(processors.TemplateProcessing(single=around.single, pair=around.pair, special_tokens=tokens))
    library.post_processor = processors.Sequence(steps)


def _gpt2_model(vocabulary: Vocabulary, merges: Merges, settings: Settings) -> Library:
    library = Library(models.BPE(vocabulary, merges, fuse_unk=False))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=bool(settings.config.add_prefix_space))
    library.decoder = decoders.ByteLevel()
    return library


def _neox_model(vocabulary: Vocabulary, merges: Merges, settings: Settings) -> Library:
    library = _gpt2_model(vocabulary, merges, settings)
    library.normalizer = normalizers.NFC()
    return library


_QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _qwen2_model(vocabulary: Vocabulary, merges: Merges, settings: Settings) -> Library:
    library = _neox_model(vocabulary, merges, settings)
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_QWEN2_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return library


_CLIP_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def _clip_model(vocabulary: Vocabulary, merges: Merges, settings: Settings) -> Library:
    """Radford et al. 2021: lower case, words end in </w>."""
    unknown = settings.name("unk", "<|endoftext|>")
    library = Library(models.BPE(vocabulary, merges, unk_token=unknown, end_of_word_suffix="</w>", fuse_unk=False))
    library.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_CLIP_WORDS), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    library.decoder = decoders.Sequence(
        [decoders.ByteLevel(), decoders.Replace(Regex(r"</w>\z"), ""), decoders.Replace("</w>", " ")]
    )
    return library


def _gpt1_model(vocabulary: Vocabulary, merges: Merges, settings: Settings) -> Library:
    """Radford et al. 2018: characters, lower case, words end in </w>."""
    unknown = settings.name("unk", "<unk>")
    library = Library(models.BPE(vocabulary, merges, unk_token=unknown, end_of_word_suffix="</w>", fuse_unk=False))
    library.normalizer = normalizers.BertNormalizer(lowercase=True)
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.BPEDecoder(suffix="</w>")
    return library


def _decoder_only(settings: Settings) -> Template:
    bos = settings.name("bos", "<|endoftext|>") if settings.config.add_bos_token else None
    eos = settings.name("eos", "<|endoftext|>") if settings.config.add_eos_token else None
    return template.begun(bos, eos) if bos or eos else template.PLAIN


def _opt(settings: Settings) -> Template:
    stated = settings.config.add_bos_token
    return template.begun(settings.name("bos", "</s>") if stated is None or stated else None, None)


_GPT2 = _Dialect(name="byte-level BPE", build=_gpt2_model, around=_decoder_only)
_ROBERTA = _Dialect(
    name="byte-level BPE, RoBERTa",
    build=_gpt2_model,
    around=lambda settings: template.roberta(settings.name("cls", "<s>"), settings.name("sep", "</s>")),
    trim_spaces=True,
    mask="<mask>",
)
_DEBERTA = _Dialect(
    name="byte-level BPE, DeBERTa",
    build=_gpt2_model,
    around=lambda settings: template.bert(settings.name("cls", "[CLS]"), settings.name("sep", "[SEP]")),
    mask="[MASK]",
)
_CLIP = _Dialect(
    name="byte-level BPE, CLIP",
    build=_clip_model,
    around=lambda settings: Template(
        single=f"{settings.name('bos', '<|startoftext|>')} $A {settings.name('eos', '<|endoftext|>')}",
        pair="{0} $A {1} {1} $B {1}".format(
            settings.name("bos", "<|startoftext|>"), settings.name("eos", "<|endoftext|>")
        ),
    ),
    spelling=Spelling(byte_level=True, word_end="</w>"),
)
_GPT1 = _Dialect(
    name="BPE, GPT-1",
    build=_gpt1_model,
    around=lambda _: template.PLAIN,
    spelling=Spelling(word_end="</w>"),
)
_QWEN2 = _Dialect(name="byte-level BPE, Qwen2", build=_qwen2_model, around=_decoder_only)
_NEOX = _Dialect(name="byte-level BPE, GPT-NeoX", build=_neox_model, around=_decoder_only)
_OPT = _Dialect(name="byte-level BPE, OPT", build=_gpt2_model, around=_opt)

_DIALECTS = {
    **dict.fromkeys(
        ("gpt2", "nanogpt", "gptneo", "gptj", "gptbigcode", "codegen", "starcoder2", "whisper", "phi"), _GPT2
    ),
    **dict.fromkeys(("roberta", "bart", "longformer", "led"), _ROBERTA),
    **dict.fromkeys(("clip", "cliptextmodel"), _CLIP),
    **dict.fromkeys(("openaigpt", "openai"), _GPT1),
    **dict.fromkeys(("qwen2", "qwen2moe", "qwen3", "qwen3moe"), _QWEN2),
    "deberta": _DEBERTA,
    "gptneox": _NEOX,
    "opt": _OPT,
}


def _choose(settings: Settings, vocabulary: Vocabulary) -> tuple[_Dialect, list[str]]:
    """The dialect that the files name, or else the one the vocabulary looks like."""
    if settings.family in _DIALECTS:
        return _DIALECTS[settings.family], []
    if "<|startoftext|>" in vocabulary and any(token.endswith("</w>") for token in vocabulary):
        dialect = _CLIP
    elif {"<s>", "</s>", "<mask>"} <= vocabulary.keys():
        dialect = _ROBERTA
    else:
        dialect = _GPT2
    named = (
        f"names {settings.family!r}, which is not known" if settings.family else "does not name the tokenizer's class"
    )
    return dialect, [f"tokenizer_config.json {named}; vocab.json is read as {dialect.name}."]
