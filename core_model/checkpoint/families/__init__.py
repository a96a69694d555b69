"""The families of checkpoints we know: one file and one row each."""

from __future__ import annotations

import re
from collections.abc import Collection

from core_model.checkpoint.families import bert, gpt2, llama
from core_model.checkpoint.families.family import Family

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


def family_of_names(names: Collection[str]) -> Family | None:
    """The family whose telling names a file without a config has; None for names that several families share."""
    for family in FAMILIES:
        found = [any(re.fullmatch(marker, name) for name in names) for marker in family.markers]
        if found and all(found):
            return family
    return None
