"""What keys of someone else's config.json hold: their types, and names and ids as ours and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import msgspec

from core_model.config import Activation, HeadSpec, SpecialTokens
from core_model.errors import ConfigError
from core_model.wording import shown

_LARGEST_COUNT = 2**63 - 1
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=_LARGEST_COUNT)]
CountOrNone: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST_COUNT)]
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
NotNegative: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Rate: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=1)]
TokenId: TypeAlias = int | list[int] | None

ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "quick_gelu": "gelu_sigmoid",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
    "relu2": "relu_squared",
    "linear": "identity",
}
"""transformers' names of activations, ours; the first of several is the one we write."""


def activation(key: str, name: str) -> Activation:
    """Our name of an activation that `key` of the config names."""
    if name not in ACTIVATIONS:
        raise ConfigError(
            f"{key} is {shown(repr(name))} in config.json: the activation must be one of {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]


def activation_name(ours: Activation) -> str:
    """transformers' name of one of our activations; ConfigError when it has none."""
    for name, known in ACTIVATIONS.items():
        if known == ours:
            return name
    raise ConfigError(f"activation is {ours!r}: transformers has no name for it")


def equal_heads(keys: object, width: str, heads: str) -> int:
    """The size of a head: `width` shared by `heads`, both names of keys; ConfigError when they do not divide."""
    d_model, n_heads = getattr(keys, width), getattr(keys, heads)
    if d_model % n_heads:
        raise ConfigError(
            f"{heads} is {n_heads} and {width} is {d_model} in config.json: every head must have the same size"
        )
    return d_model // n_heads


@dataclass(frozen=True, kw_only=True)
class SpecialKeys:
    """The keys about tokens with a role."""

    bos_token_id: TokenId = None
    eos_token_id: TokenId = None
    pad_token_id: TokenId = None

    @property
    def special(self) -> SpecialTokens:
        """The ids with a role."""
        return special_tokens(begin=self.bos_token_id, end=self.eos_token_id, padding=self.pad_token_id)


@dataclass(frozen=True, kw_only=True)
class TextKeys(SpecialKeys):
    """The keys that mean the same in every family that reads tokens with one stack."""

    vocab_size: Count
    tie_word_embeddings: bool | None = None
    id2label: dict[str, str] | None = None


def special_keys(special: SpecialTokens) -> dict[str, Any]:
    """The `SpecialKeys` that say these ids, by name."""
    return {"bos_token_id": special.begin, "eos_token_id": special.end, "pad_token_id": special.padding}


def special_tokens(
    *, begin: TokenId = None, end: TokenId = None, padding: TokenId = None, decoder_start: TokenId = None
) -> SpecialTokens:
    """Ids with a role; of several the first, and -1, which some configs write for none, is none."""
    return SpecialTokens(
        begin=_first_id(begin),
        end=_first_id(end),
        padding=_first_id(padding),
        decoder_start=_first_id(decoder_start),
    )


def classes(id2label: Mapping[str, str] | None, n_stored: int | None) -> tuple[int, tuple[str, ...]]:
    """How many classes a classifier tells apart, and their names: as config.json says, else as many as are stored.

    LABEL_0, LABEL_1 ... are transformers' way of having no names. ConfigError for ids that are no 0, 1, 2 ...
    """
    if id2label is None:
        return n_stored or 2, ()
    wanted = [str(i) for i in range(len(id2label))]
    if not id2label or sorted(id2label) != sorted(wanted):
        raise ConfigError(f"id2label has the keys {shown(', '.join(id2label))} in config.json: expected 0, 1, 2 ...")
    names = tuple(id2label[key] for key in wanted)
    return len(names), () if names == _unnamed(len(names)) else names


def class_names(head: HeadSpec | None) -> dict[str, str] | None:
    """The id2label of a classifier; None for other heads."""
    if head is None or head.task not in ("sequence_classes", "token_classes", "image_classes"):
        return None
    return {str(i): name for i, name in enumerate(head.labels or _unnamed(head.n_outputs))}


def _unnamed(n_classes: int) -> tuple[str, ...]:
    return tuple(f"LABEL_{i}" for i in range(n_classes))


def _first_id(value: TokenId) -> int | None:
    first = (value or [None])[0] if isinstance(value, list) else value
    return first if first is not None and first >= 0 else None
