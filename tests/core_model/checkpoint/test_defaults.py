"""A key that config.json lacks means what the family's config class of transformers says: each key left out in turn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from core_model.checkpoint.families import FAMILIES
from core_model.checkpoint.families.family import Family, weights_of
from core_model.config import ModelConfig
from core_model.errors import ConfigError
from core_model.keys import read_keys

SMALL: dict[str, Any] = {
    **dict.fromkeys(("vocab_size", "intermediate_size", "d_ff", "hidden_dim", "ffn_dim"), 32),
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim"), 16),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers"), 6),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"), 2),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "num_key_value_heads"), 2),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 24),
    **dict.fromkeys(("patch_size", "rotary_dim"), 4),
    **dict.fromkeys(("image_size", "d_kv"), 8),
    "num_hidden_groups": 1,
    "attention_types": [[["global", "local"], 3]],
}
"""Sizes that fit together."""
STRETCHED: dict[str, Any] = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0}
LONG: dict[str, Any] = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
MODEL_TYPES = [(family, name) for family in FAMILIES for name in family.model_types if name in CONFIG_MAPPING]
NO_SETTINGS = ("model_type", "architectures", "transformers_version", "dtype")
TOLD_BY_THE_FILE = ("tie_word_embeddings",)
"""Without this key a head that is stored is used, and an absent one is the token table."""
TOLD_BY_THE_TOKENIZER = "config.special."
"""Ids of tokens with a role: the class's belong to the vocabulary of one model, and are not assumed of others."""


def document_of(config: PreTrainedConfig) -> dict[str, Any]:
    """The config.json with every key."""
    return json.loads(config.to_json_string(use_diff=False))


def small(model_type: str) -> dict[str, Any]:
    """The config.json of a small model."""
    known = CONFIG_MAPPING[model_type]
    usual = known()
    return document_of(known(**{key: value for key, value in SMALL.items() if hasattr(usual, key)}))


def stretched(model_type: str) -> dict[str, Any]:
    """The same with rotary positions stretched from a length that only max_position_embeddings tells."""
    document = small(model_type)
    rope = LONG if model_type == "phi3" else STRETCHED
    kinds = document["rope_parameters"]
    if "full_attention" in kinds:
        return {**document, "rope_parameters": {**kinds, "full_attention": rope}}
    share = {key: value for key, value in kinds.items() if key == "partial_rotary_factor"}
    return {**document, "rope_parameters": {**share, **rope}}


def read(family: Family, document: Mapping[str, Any]) -> ModelConfig:
    """The model with a head that a config.json describes."""
    tasks = ("language_model", "masked_language_model", "image_classes", None)
    classes = {task: name for name, task in reversed(list(family.architectures.items()))}
    architecture = next(classes[task] for task in tasks if task in classes)
    return family.read(
        read_keys(family.renamed(document), family.keys), weights_of(family.names, {}, architecture=architecture)
    )


def differences(ours: object, theirs: object, place: str = "config") -> Iterator[str]:
    """Where two configs differ."""
    if is_dataclass(ours) and type(ours) is type(theirs):
        for field in fields(ours):
            yield from differences(getattr(ours, field.name), getattr(theirs, field.name), f"{place}.{field.name}")
    elif isinstance(ours, tuple) and isinstance(theirs, tuple) and len(ours) == len(theirs):
        for i, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(our, their, f"{place}[{i}]")
    elif ours != theirs:
        yield f"{place}: {ours!r}, transformers {theirs!r}"


def assert_defaults_agree(family: Family, model_type: str, document: Mapping[str, Any]) -> None:
    """Each key left out reads as when it has the value that the library's class gives it."""
    read(family, document)
    n_compared, found = 0, {}
    for key in document.keys() - {*NO_SETTINGS, *TOLD_BY_THE_FILE}:
        lacking = {name: value for name, value in document.items() if name != key}
        try:
            ours = read(family, lacking)
            filled = document_of(CONFIG_MAPPING[model_type].from_dict(json.loads(json.dumps(lacking))))
            theirs = read(family, filled)
        except ConfigError:  # the key has no default here, or one that does not fit the small sizes
            continue
        n_compared += 1
        told = [line for line in differences(ours, theirs) if not line.startswith(TOLD_BY_THE_TOKENIZER)]
        if told:
            found[key] = told[0]
    assert found == {}
    assert n_compared > len(document) / 2


@pytest.mark.parametrize(("family", "model_type"), MODEL_TYPES, ids=[name for _, name in MODEL_TYPES])
def test_a_key_that_is_absent_has_transformers_default(family: Family, model_type: str) -> None:
    assert_defaults_agree(family, model_type, small(model_type))


ROTARY = [(family, name) for family, name in MODEL_TYPES if "rope_parameters" in CONFIG_MAPPING[name]().to_dict()]


@pytest.mark.parametrize(("family", "model_type"), ROTARY, ids=[name for _, name in ROTARY])
def test_with_stretched_positions_too(family: Family, model_type: str) -> None:
    assert_defaults_agree(family, model_type, stretched(model_type))
