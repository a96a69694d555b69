"""Where two configs differ, as a person reads it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from core_model.checkpoint.config_codec import config_to_json
from core_model.checkpoint.differences import first_difference
from core_model.checkpoint.export import express_some_way
from core_model.checkpoint.families import FAMILIES
from core_model.config import (
    AlibiPositions,
    AudioEmbedding,
    MaskSpec,
    ModelConfig,
    ResidualSpec,
    RotaryPositions,
    SinusoidalPositions,
    multi_head,
)
from core_model.errors import ConfigError
from tests.core_model.checkpoint.configs import EVERY, WIDTH, layer, stack

ATTENTION = multi_head(WIDTH, 2, mask=MaskSpec(causal=True))
ROTARY = RotaryPositions(n_rotated=6)


def decoder(attention: Any = ATTENTION, **options: Any) -> ModelConfig:
    """A decoder of two layers, the second as said."""
    return ModelConfig(decoder=stack(layer(ATTENTION), layer(attention, **options)))


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        (
            decoder(),
            decoder(replace(ATTENTION, position=ROTARY)),
            "the attention of layer 1 of the decoder has no position encoding, where X has rotary positions",
        ),
        (
            decoder(replace(ATTENTION, position=AlibiPositions())),
            decoder(),
            "the attention of layer 1 of the decoder has ALiBi positions, where X has none",
        ),
        (
            decoder(replace(ATTENTION, position=ROTARY)),
            decoder(replace(ATTENTION, position=replace(ROTARY, n_rotated=4))),
            "the position encoding of the attention of layer 1 of the decoder has 6 rotated dimensions, "
            "where X has 4 rotated dimensions",
        ),
        (
            decoder(replace(ATTENTION, query_bias=False)),
            decoder(),
            "the attention of layer 1 of the decoder has no query bias, where X has a query bias",
        ),
        (
            decoder(attention_residual=ResidualSpec()),
            decoder(),
            "the attention sublayer of layer 1 of the decoder has no norm in front, where X has a norm in front",
        ),
        (
            decoder(replace(ATTENTION, scale=1 / 3)),
            decoder(replace(ATTENTION, scale=0.5)),
            "the attention of layer 1 of the decoder has scale 0.333333, where X has scale 0.5",
        ),
        (
            ModelConfig(encoder=stack(layer(ATTENTION))),
            ModelConfig(encoder=stack(layer(ATTENTION), embedding=AudioEmbedding(n_features=5))),
            "the encoder has an embedding of tokens, where X has an embedding of audio",
        ),
        (
            ModelConfig(encoder=stack(layer(ATTENTION), position=SinusoidalPositions())),
            decoder(),
            "it has an encoder, where X has none",
        ),
        (
            decoder(),
            ModelConfig(decoder=stack(layer(ATTENTION))),
            "the decoder has 2 layers, where X has 1 layer",
        ),
        (decoder(), decoder(), None),
    ],
)
def test_the_first_difference_is_told_in_words(ours: ModelConfig, theirs: ModelConfig, told: str | None) -> None:
    assert first_difference(config_to_json(ours), config_to_json(theirs), "X") == told


def test_no_name_of_a_field_of_ours_is_told(subtests: pytest.Subtests) -> None:
    names = re.compile(r"config\.(?!json)|\b(None|True|False)\b|\b(head\.task|layers\[)|\bn_[a-z]+|\bd_[a-z]+")
    for name, make in EVERY.items():
        for family in FAMILIES:
            with subtests.test(name, family=family.key), pytest.raises(ConfigError) as caught:
                express_some_way(make(), family)
            assert not names.search(str(caught.value)), caught.value
