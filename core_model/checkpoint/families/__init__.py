"""The families of checkpoints we know: one file and one row each."""

from __future__ import annotations

from collections.abc import Mapping

from core_model.checkpoint.families import bert, gpt2, llama
from core_model.checkpoint.families.family import Family, weights_of
from core_model.checkpoint.shapes import Shape

FAMILIES: tuple[Family, ...] = (
    gpt2.FAMILY,
    bert.FAMILY,
    llama.FAMILY,
)


def family_of(model_type: str | None, architecture: str | None) -> Family | None:
    """The family a config names by its model_type or, without one, by the class of transformers it was saved from."""
    for family in FAMILIES:
        if model_type in family.model_types or (model_type is None and architecture in family.architectures):
            return family
    return None


def family_of_names(shapes: Mapping[str, Shape]) -> Family | None:
    """The family whose telling names a file without a config has."""
    for family in FAMILIES:
        weights = weights_of(family, shapes)
        if family.markers and all(marker in weights for marker in family.markers):
            return family
    return None
