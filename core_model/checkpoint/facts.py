"""What people ask about a model, each fact with where it comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from core_model.checkpoint.families.family import Family
from core_model.config import (
    AlibiPositions,
    BucketedPositions,
    DisentangledPositions,
    GridPositions,
    LearnedPositions,
    ModelConfig,
    RotaryPositions,
    SinusoidalPositions,
    StackConfig,
    TokenEmbedding,
)
from core_model.results import CONTEXT_LENGTH, Fact, Origin
from core_model.wording import shown

FACT_LABELS = {
    "n_layers": "layers",
    "n_heads": "heads",
    "n_key_heads": "key-value heads",
    "head_size": "head size",
    "d_model": "model width",
    "d_hidden": "feed-forward width",
    "vocab_size": "vocabulary",
    "max_length": CONTEXT_LENGTH,
    "n_types": "token types",
    "activation": "activation",
    "eps": "norm epsilon",
    "norm_first": "norms before sublayers",
}
"""The facts a config.json may state, as `Family.places` and `assume` call them, and what people call them."""

_OF_TOKENS = ("vocab_size", "max_length", "n_types")
"""Facts of a model that reads tokens, which a family's config may state of a tower that is not there."""

_POSITION_NAMES = {
    SinusoidalPositions: "sinusoidal",
    LearnedPositions: "learned",
    RotaryPositions: "rotary",
    AlibiPositions: "ALiBi",
    BucketedPositions: "relative, in buckets",
    GridPositions: "relative, by rows and columns",
    DisentangledPositions: "relative, disentangled from content",
}
_TASK_NAMES = {
    "language_model": "language model",
    "masked_language_model": "masked language model",
    "replaced_tokens": "replaced-token detection",
    "sequence_classes": "sequence classification",
    "token_classes": "token classification",
    "answer_span": "question answering",
    "image_classes": "image classification",
    "image_tokens": "masked image modelling",
}


def stated_facts(
    family: Family, config: ModelConfig, keys: Any, document: Mapping[str, Any], architecture: str | None
) -> tuple[Fact, ...]:
    """The facts of a foreign checkpoint, of the class named `architecture`: stated where its config.json has the key,
    else inferred.
    """
    sizes = _sizes(config)
    reads_tokens = any(isinstance(stack.embedding, TokenEmbedding) for stack in config.stacks.values())
    facts = [
        Fact(
            name=label,
            value=str(sizes.get(name, attrgetter(family.places[name])(keys))),
            origin=_origin(document, family.places[name]),
        )
        for name, label in FACT_LABELS.items()
        if name in family.places and (reads_tokens or name not in _OF_TOKENS)
    ]
    facts.append(Fact(name="positions", value=positions_name(config), origin=_origin(document, "model_type")))
    head = head_name(config, architecture)
    facts.append(Fact(name="output head", value=head, origin=_origin(document, "architectures")))
    if config.head is not None and config.head.task in ("language_model", "masked_language_model"):
        value = "tied to the token embedding" if config.head.tied else "of its own"
        facts.append(Fact(name="output head's weight", value=value, origin=_origin(document, "tie_word_embeddings")))
    return tuple(facts)


def native_facts(config: ModelConfig) -> tuple[Fact, ...]:
    """The facts of our own checkpoints, all stated."""
    named = {FACT_LABELS[name]: str(value) for name, value in _sizes(config).items()}
    named |= {"positions": positions_name(config), "output head": head_name(config)}
    return tuple(Fact(name=name, value=value, origin="stated") for name, value in named.items())


def positions_name(config: ModelConfig) -> str:
    """How the output stack knows order, in words."""
    stack = config.output_stack
    position = stack.position or next(filter(None, (layer.attention.position for layer in stack.layers)), None)
    return "none" if position is None else _POSITION_NAMES[type(position)]


def uncomputed_head(config: ModelConfig, architecture: str | None) -> str | None:
    """The class of transformers that the model is of, where that has an output head and the model as read has none."""
    has_output = config.head is not None or config.vectors is not None
    return architecture if not has_output and re.search(r"For[A-Z]", architecture or "") else None


def head_name(config: ModelConfig, architecture: str | None = None) -> str:
    """What the output head of a model, of the class named `architecture`, is for, in words."""
    if config.head is not None:
        return _TASK_NAMES[config.head.task]
    if (named := uncomputed_head(config, architecture)) is not None:
        return f"not computed ({shown(named)})"
    if config.vectors is None:
        return "none"
    return "similarity of text and image" if config.vectors.compared else "one vector"


def _sizes(config: ModelConfig) -> dict[str, object]:
    """The sizes of the model by fact; where its stacks differ, each with its stack."""
    by_stack = {name: _stack_sizes(stack) for name, stack in config.stacks.items()}
    told: dict[str, object] = {}
    for fact, value in by_stack[config.output_name].items():
        values = {name: sizes[fact] for name, sizes in by_stack.items() if fact in sizes}
        differ = len(set(values.values())) > 1
        told[fact] = ", ".join(f"{value} ({name})" for name, value in values.items()) if differ else value
    return told


def _stack_sizes(stack: StackConfig) -> dict[str, object]:
    if not stack.layers:
        return {"d_model": stack.d_model}
    layer = stack.layers[0]
    return {
        "n_layers": stack.n_layers,
        "n_heads": layer.attention.n_heads,
        "n_key_heads": layer.attention.n_key_heads,
        "head_size": layer.attention.head_size,
        "d_model": stack.d_model,
        "d_hidden": layer.feed_forward.d_hidden,
        **({"vocab_size": stack.embedding.vocab_size} if isinstance(stack.embedding, TokenEmbedding) else {}),
        "activation": layer.feed_forward.activation,
    }


def _origin(document: Mapping[str, Any], key: str) -> Origin:
    """Whether the document has the key, dotted inside a part of it."""
    value: object = document
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return "inferred" if value is None else "stated"
