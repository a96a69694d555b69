"""What tokenizer_config.json and its companions say about a vocabulary that comes in the older, separate files.

tokenizer_config.json (names, flags, added tokens), special_tokens_map.json (names), added_tokens.json (token -> id).
Chat templates and code references in them are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from core_model.tokenize.files import fault, present, read_json


class _Token(msgspec.Struct):
    content: str
    special: bool = False
    lstrip: bool = False


_Name = str | _Token | None
_Names = list[str | _Token] | dict[str, str | _Token] | None


class _SpecialTokensMap(msgspec.Struct):
    bos_token: _Name = None
    eos_token: _Name = None
    unk_token: _Name = None
    sep_token: _Name = None
    pad_token: _Name = None
    cls_token: _Name = None
    mask_token: _Name = None
    additional_special_tokens: _Names = None
    extra_special_tokens: _Names = None


class TokenizerConfig(_SpecialTokensMap):
    """The fields of tokenizer_config.json that change how text becomes ids."""

    tokenizer_class: str | None = None
    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    keep_accents: bool | None = None
    tokenize_chinese_chars: bool | None = None
    add_prefix_space: bool | None = None
    add_bos_token: bool | None = None
    add_eos_token: bool | None = None
    separate_vocabs: bool | None = None
    extra_ids: int | None = None
    offset: int | None = None
    src_lang: str | None = None
    tgt_lang: str | None = None
    added_tokens_decoder: dict[int, _Token] | None = None


_F = TypeVar("_F", bound=_SpecialTokensMap)
_ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The older files' settings in one place. None means that the files do not say."""

    family: str
    """The tokenizer class without "Tokenizer" or "Fast", in lower case ("bert"); or else the model type; or else ""."""
    names: Mapping[str, str]
    """Role (bos, eos, unk, sep, pad, cls, mask) -> token."""
    more_special: tuple[str, ...]
    """Further control tokens (language codes, sentinels), in the order given."""
    added: Mapping[str, int]
    """Tokens outside the vocabulary file -> id."""
    declared: frozenset[str]
    """Tokens that are read as themselves when typed in a text, because the files list them as such."""
    special: frozenset[str]
    """Those that are control tokens."""
    lstrip: frozenset[str]
    """Those that swallow the spaces before them."""
    config: TokenizerConfig

    def name(self, role: str, default: str) -> str:
        """The token of `role`, by default that of the original release."""
        return self.names.get(role, default)


def read_settings(folder: Path, model_type: str | None) -> Settings:
    """The settings in `folder`; `model_type` helps where no tokenizer class is named."""
    config = _read(folder, "tokenizer_config.json", TokenizerConfig)
    names_file = _read(folder, "special_tokens_map.json", _SpecialTokensMap)
    listed = read_json(folder / "added_tokens.json", dict[str, int]) if present(folder, "added_tokens.json") else {}
    decoder = config.added_tokens_decoder or {}
    for id in (*listed.values(), *decoder):
        if not 0 <= id < 2**31:
            raise fault(folder / "tokenizer_config.json", f"gives an added token the id {id}, which is out of range")
    names = _names(names_file) | _names(config)
    mapped = set(_names(names_file).values())
    more = tuple(dict.fromkeys((*_more(config), *_more(names_file))))
    mask = {names["mask"]} if "mask" in names else set()
    control = {token.content for token in decoder.values() if token.special}
    objects = [*decoder.values(), *_objects(config), *_objects(names_file)]
    return Settings(
        family=_family(config.tokenizer_class, model_type),
        names=names,
        more_special=more,
        added=listed | {token.content: id for id, token in decoder.items()},
        declared=frozenset({*listed, *(token.content for token in decoder.values()), *mapped, *more, *mask}),
        special=frozenset({*control, *names.values(), *more}),
        lstrip=frozenset(token.content for token in objects if token.lstrip),
        config=config,
    )


def _read(folder: Path, name: str, shape: type[_F]) -> _F:
    return read_json(folder / name, shape) if present(folder, name) else shape()


def _family(tokenizer_class: str | None, model_type: str | None) -> str:
    """ "GPT2TokenizerFast" -> "gpt2"; classes that name no family leave it to the model type."""
    name = (tokenizer_class or "").removesuffix("Fast").removesuffix("Tokenizer")
    if name in ("", "PreTrained", "TokenizersBackend"):
        name = model_type or ""
    return name.lower().replace("-", "").replace("_", "")


def _text(token: str | _Token) -> str:
    return token if isinstance(token, str) else token.content


def _names(file: _SpecialTokensMap) -> dict[str, str]:
    tokens = {role: getattr(file, f"{role}_token") for role in _ROLES}
    return {role: _text(token) for role, token in tokens.items() if token is not None}


def _objects(file: _SpecialTokensMap) -> list[_Token]:
    tokens = [getattr(file, f"{role}_token") for role in _ROLES]
    return [token for token in tokens if isinstance(token, _Token)]


def _more(file: _SpecialTokensMap) -> list[str]:
    tokens: list[str] = []
    for names in (file.additional_special_tokens, file.extra_special_tokens):
        values = names.values() if isinstance(names, dict) else names or []
        tokens += [_text(token) for token in values]
    return tokens
