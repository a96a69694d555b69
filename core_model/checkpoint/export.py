"""Saving a model as a folder of one of the families, which the transformers library opens.

A family's `write` proposes a config; reading it back must give the model's own config, so nothing is lost unnoticed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from core_model.checkpoint.config_codec import config_to_json
from core_model.checkpoint.differences import first_difference
from core_model.checkpoint.families import FAMILIES
from core_model.checkpoint.families.family import Family, Foreign, assignments, weights_of
from core_model.checkpoint.folder import CONFIG_NAME
from core_model.checkpoint.folding import folded, folded_state
from core_model.checkpoint.writing import staged_folder, write_json, write_weights
from core_model.config import ModelConfig
from core_model.errors import CheckpointError, ConfigError
from core_model.shapes import tensor_shapes
from core_model.wording import file_name

if TYPE_CHECKING:
    import torch

    from core_model.nn.transformer import Transformer


@dataclass(frozen=True, kw_only=True)
class Expression:
    """A config as a family says it."""

    family: Family
    foreign: Foreign

    @property
    def document(self) -> dict[str, Any]:
        """The config.json."""
        keys = _stated(self.foreign.keys)
        named = {"architectures": [self.foreign.architecture], "model_type": self.family.model_types[0]}
        return {**named, **keys}

    def tensors(self, state: Mapping[str, torch.Tensor], config: ModelConfig) -> dict[str, torch.Tensor]:
        """The weights under the family's names."""
        table = self.family.names
        prefix = table.written_prefix(self.family.architectures[self.foreign.architecture])

        def full(short: str) -> str:
            return short if short.startswith(table.roots) else f"{prefix}{short}"

        shapes = tensor_shapes(config)
        n_layers = max(stack.n_layers for stack in config.stacks.values())
        tensors: dict[str, torch.Tensor] = {}
        for line in assignments(table.rows(config), shapes, n_layers):
            theirs = line.conversion.to_theirs([state[name] for name in line.ours])
            tensors.update({full(short): tensor for short, tensor in zip(line.theirs, theirs, strict=True)})
            if theirs[0].dim() == 1:  # a bias under all its names: versions of the library differ in which they read
                tensors.update({full(copy): theirs[0].clone() for copy in line.also})
        return tensors


def express(config: ModelConfig, family: Family) -> Expression:
    """The config as the family says it; ConfigError tells the first thing the family cannot say."""
    if absent := next((name for name, stack in config.stacks.items() if not stack.layers), None):
        raise ConfigError(f"the {absent} has no layers: no family has models whose {absent} is left out")
    foreign = family.write(config)
    weights = weights_of(family.names, foreign.stored, architecture=foreign.architecture)
    try:
        read = family.read(foreign.keys, weights)
    except ConfigError as error:
        raise ConfigError(f"this model is no {family.label}: {error}") from error
    difference = first_difference(config_to_json(config), config_to_json(read), family.label)
    if difference is not None:
        raise ConfigError(f"this model is no {family.label}: {difference}")
    return Expression(family=family, foreign=foreign)


def express_some_way(config: ModelConfig, family: Family) -> tuple[Expression, ModelConfig]:
    """The config as the family says it, or the same model in other words; also the config that was said.

    ConfigError tells the first thing that the family cannot say.
    """
    try:
        return express(config, family), config
    except ConfigError:
        plain = folded(config)
        if plain is None:
            raise
        return express(plain, family), plain


def expressing_families(config: ModelConfig) -> tuple[Family, ...]:
    """The families that can say all of a config, in one way or another."""
    found = []
    for family in FAMILIES:
        try:
            express_some_way(config, family)
        except ConfigError:
            continue
        found.append(family)
    return tuple(found)


def family_named(key: str) -> Family:
    """The family of that key; ConfigError lists those there are."""
    family = next((known for known in FAMILIES if known.key == key), None)
    if family is None:
        raise ConfigError(f"family is {key!r}: expected one of {', '.join(known.key for known in FAMILIES)}")
    return family


def check_new(folder: Path) -> None:
    """Refuse a folder that holds something: nothing of someone else's is replaced."""
    if folder.exists() and not folder.is_dir():
        raise CheckpointError(f"{file_name(folder)} is a file: choose a new folder", path=folder)
    if folder.is_dir() and any(folder.iterdir()):
        raise CheckpointError(f"{file_name(folder)} is not empty: choose a new folder", path=folder)


def save_as_family(
    folder: Path,
    model: Transformer,
    family_key: str,
    *,
    inputs: Iterable[Path] = (),
    dtype: torch.dtype | None = None,
) -> None:
    """Write config.json, model.safetensors and copies of the files `inputs`.

    The weights are written in `dtype`, by default in the model's own.

    The folder must be new or empty: nothing of someone else's is replaced. ConfigError when the family cannot say the
    model; CheckpointError for a folder in use; OSError when the disk refuses.
    """
    expression, said = express_some_way(model.config, family_named(family_key))
    check_new(folder)
    state = model.state_dict() if said == model.config else folded_state(model.config, model.state_dict())
    dtype = dtype or next(iter(state.values())).dtype
    with staged_folder(folder) as new:
        write_weights(new, {name: tensor.to(dtype) for name, tensor in expression.tensors(state, said).items()})
        stored = {"torch_dtype": str(dtype).removeprefix("torch.")}
        write_json(new / CONFIG_NAME, {**expression.document, **stored}, indent=2)
        for path in inputs:
            shutil.copyfile(path, new / path.name)


def _stated(keys: Any) -> dict[str, Any]:
    """The keys without absent values.

    None stays where absence would mean something else, and for special tokens: the library's own are other models' ids.
    """
    absent = {field.name for field in fields(keys) if field.default is None and not field.name.endswith("_token_id")}
    document = msgspec.to_builtins(keys)
    return {key: _without_none(value) for key, value in document.items() if value is not None or key not in absent}


def _without_none(value: Any) -> Any:
    """A part of the document without absent values."""
    if not isinstance(value, dict):
        return value
    return {key: _without_none(item) for key, item in value.items() if item is not None}
