"""What the model card says of an output head."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core_model.checkpoint.facts import head_name
from core_model.config import ModelConfig
from tests.core_model.checkpoint.configs import compared_towers, shared_encoder


@pytest.mark.parametrize(
    ("config", "architecture", "said"),
    [
        (replace(shared_encoder(), head=None), "RoFormerModel", "none"),
        (replace(shared_encoder(), head=None), None, "none"),
        (replace(shared_encoder(), head=None), "ViTForMaskedImageModeling", "not computed (ViTForMaskedImageModeling)"),
        (shared_encoder(), "BertForMaskedLM", "masked language model"),
        (compared_towers(), "CLIPForImageClassification", "similarity of text and image"),
    ],
)
def test_a_head_that_the_class_has_and_the_model_as_read_has_not_is_said_not_to_be_computed(
    config: ModelConfig, architecture: str | None, said: str
) -> None:
    assert head_name(config, architecture) == said
