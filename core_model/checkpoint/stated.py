"""Where a model's settings are stated: in config.json, or in what some families have in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from core_model.checkpoint.families.family import Family
from core_model.checkpoint.folder import CONFIG_NAME, Location
from core_model.checkpoint.json_text import read_json
from core_model.checkpoint.shards import TensorStore
from core_model.errors import CheckpointError, ConfigError
from core_model.wording import file_name


@dataclass(frozen=True, kw_only=True)
class Stated:
    """What is stated of a model, as its file spells it, and the name of that file; nothing where there is none."""

    document: Mapping[str, Any]
    source: str = CONFIG_NAME

    @contextmanager
    def named_in_errors(self, family: Family) -> Iterator[None]:
        """Let a ConfigError name the file and its own spelling of the keys, where they are not those of config.json."""
        try:
            yield
        except ConfigError as error:
            text = str(error).replace(CONFIG_NAME, self.source)
            for name, key in family.aliases.items():
                if self.document.get(name) is not None:
                    text = re.sub(rf"\b{key}\b", name, text)
            error.args = (text,)
            raise


def find_stated(family: Family, location: Location, store: TensorStore, config: Mapping[str, Any] | None) -> Stated:
    """What a family's files say; `config` is the document in config.json."""
    if family.document and (own := location.beside(family.document)) is not None:
        return Stated(document=read_json(own), source=family.document)
    document = config or {}
    if family.part and isinstance(part := document.get(family.part), dict):
        return Stated(document={**document, **part})
    if family.part and (text := store.metadata.get(family.part)) is not None:
        return Stated(document={**document, **_part_of_header(family.part, text, store)}, source="the weights' header")
    return Stated(document=document)


def _part_of_header(name: str, text: str, store: TensorStore) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        path = store.files[0]
        raise CheckpointError(
            f"{name} in the header of {file_name(path)} is no JSON object: put {name}.json beside it", path=path
        ) from error
