"""Where two configs differ, in words for a person who has never seen the names of their fields."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

FieldPath: TypeAlias = tuple[str | int, ...]
"""Field names and indices, from the whole model inwards."""

_NO_EFFECT = ("dropout", "special", "smooths_positions")
"""Fields of a config that change no logits, or of pictures of another size alone: a family may lack them."""

_WORDS = {
    "encoder": "an encoder",
    "text": "a tower of text",
    "vision": "a tower of images",
    "head": "an output head",
    "vectors": "an output vector",
    "shared_embedding": "one token table for encoder and decoder",
    "position": "a position encoding",
    "embedding": "an embedding",
    "distances": "vectors of distances",
    "always_projects": "a projection to the same width",
    "zeroed": "tokens that go in as zeros",
    "d_model": "width",
    "d_embedding": "token vectors of width",
    "d_hidden": "hidden width",
    "d_output": "output width",
    "d_shared": "a shared expert of width",
    "max_length": "positions up to",
    "attention": "an attention",
    "attention_residual": "an attention sublayer",
    "cross_residual": "a cross-attention sublayer",
    "feed_forward_residual": "a feed-forward sublayer",
    "feed_forward": "a feed-forward",
    "before": "a norm in front",
    "after": "an output norm",
    "total": "a norm of the sum",
    "skip": "a residual path",
    "parallel": "a feed-forward beside its attention",
    "shared_norm": "one norm for both sublayers",
    "unit_offset": "an offset of 1",
    "gated": "a gate",
    "experts": "a mixture of experts",
    "n_active": "active experts",
    "renormalize": "expert weights that sum to 1",
    "causal": "a causal triangle",
    "n_global": "global tokens",
    "n_prefix": "prefix tokens",
    "sinks": "attention sinks",
    "output_bias": "an output bias",
    "over": "statistics over",
    "query_key_norm": "a norm of queries and keys",
    "n_rotated": "rotated dimensions",
    "scaling": "a scaling of the angles",
    "rounded": "rounded slopes",
    "bidirectional": "buckets for both directions",
    "from_layer": "a table of layer",
    "content_to_position": "scores of content against position",
    "position_to_content": "scores of position against content",
    "shared_maps": "maps shared with the content",
    "has_class_token": "a class token",
    "tied": "a weight tied to the token embedding",
    "compared": "vectors that are compared",
    "padded": "padded texts",
}
"""What a field is called where its own name does not say it: with an article where one can be counted."""
_KINDS = {"position": "{} positions", "embedding": "an embedding of {}"}
"""Fields that hold one of several kinds of record."""
_PROPER = {"alibi": "ALiBi"}


def first_difference(ours: Any, theirs: Any, label: str) -> str | None:
    """Where two config documents first differ, in words; None when they say the same model.

    `ours` is that of a model, `theirs` the nearest that the family called `label` can say.
    """
    found = _first(ours, theirs, ())
    if found is None:
        return None
    path, ours, theirs = found
    name = next(part for part in reversed(path) if isinstance(part, str))
    has = f"{_where(path)} has {_what(name, ours)}"
    return f"{has}, where {label} has {'none' if _is_absent(theirs) else _what(name, theirs)}"


def _first(ours: Any, theirs: Any, path: FieldPath) -> tuple[FieldPath, Any, Any] | None:
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        pairs = [(ours[key], theirs[key], (*path, key)) for key in ours if key not in _NO_EFFECT]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = [(ours[i], theirs[i], (*path, i)) for i in range(len(ours))]
    else:
        return None if ours == theirs else (path, ours, theirs)
    found = (_first(*pair) for pair in pairs)
    return next((difference for difference in found if difference is not None), None)


def _where(path: FieldPath) -> str:
    """What has the field at the end of a path: "the attention of layer 0 of the decoder"."""
    records: list[str] = []
    for outer, part in pairwise(path):
        if isinstance(part, int):
            records += [f"layer {part}"] if outer == "layers" else []
        elif isinstance(outer, str) and outer != "layers":
            records.append(f"the {_noun(outer)}")
    return " of ".join(reversed(records)) or "it"


def _what(name: str, value: Any) -> str:
    """What a field holds: "no positions", "rotary positions", "a gate", "2 key heads", "window 8"."""
    noun = _noun(name)
    if _is_absent(value):
        return f"no {noun}"
    if isinstance(value, dict) and name in _KINDS:
        kind = value.get("type", "tokens")
        return _KINDS[name].format(_PROPER.get(kind, kind))
    if isinstance(value, dict | bool):
        return _WORDS.get(name, f"a {noun}")
    if isinstance(value, list):
        return f"{len(value)} {noun.removesuffix('s') if len(value) == 1 else noun}"
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    if name.startswith("n_"):
        return f"{shown} {noun.removesuffix('s') if value == 1 else noun}"
    return f"{noun} {shown}"


def _is_absent(value: Any) -> bool:
    return value is None or value is False


def _noun(name: str) -> str:
    """A field without an article."""
    words = _WORDS.get(name, name.removeprefix("n_").replace("_", " "))
    return words.removeprefix("a ").removeprefix("an ")
