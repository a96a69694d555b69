"""Our own checkpoints: a run folder with model.safetensors in our names and config.json with a ModelConfig."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_model.checkpoint.config_codec import config_from_json, config_to_json
from core_model.checkpoint.families.family import NameTable, row
from core_model.checkpoint.folder import CONFIG_NAME
from core_model.checkpoint.writing import staged_folder, write_json, write_weights
from core_model.config import ModelConfig
from core_model.errors import ConfigError
from core_model.shapes import tensor_shapes
from core_model.tokenize.encoding import SavableTokenizer
from core_model.wording import shown

if TYPE_CHECKING:
    from core_model.nn.transformer import Transformer

FORMAT = "transformer-explorer"
FAMILY = "native"
"""What such a checkpoint's family is called."""
VERSION = 1

NAMES = NameTable(rows=lambda config: [row(name, name) for name in tensor_shapes(config)])
"""The name table of our own files: every name stands for itself."""


def save_run_model(
    folder: Path, model: Transformer, tokenizer: SavableTokenizer | None, extra: Mapping[str, object]
) -> None:
    """Write the files of a run folder, in the place of older ones once all are written; others in the folder stay.

    `extra` maps file names to JSON values. OSError when the disk refuses: the old files are then untouched.
    """
    with staged_folder(folder) as new:
        write_weights(new, model.state_dict())
        write_json(new / CONFIG_NAME, config_document(model.config), indent=1)
        if tokenizer is not None:
            tokenizer.save(new)
        for name, document in extra.items():
            write_json(new / name, document)


def config_document(config: ModelConfig) -> dict[str, Any]:
    """The config.json of a run folder."""
    return {"format": FORMAT, "version": VERSION, "config": config_to_json(config)}


def read_config(document: Mapping[str, Any]) -> ModelConfig:
    """The config in a run folder's config.json; ConfigError names what is wrong with it."""
    version = document.get("version")
    if version != VERSION:
        raise ConfigError(
            f"config.json has version {shown(repr(version))}: this program reads version {VERSION}, "
            "open the run with the program that wrote it"
        )
    return config_from_json(document.get("config", {}))
