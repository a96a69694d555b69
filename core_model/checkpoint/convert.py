"""Writing a checkpoint anew as a Hugging Face folder of a family that can express it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from core_model.cancel import CancelToken, Progress
from core_model.checkpoint.export import check_new, express_some_way, expressing_families, family_named, save_as_family
from core_model.checkpoint.families.family import Family
from core_model.checkpoint.open import Checkpoint, open_checkpoint
from core_model.config import ModelConfig
from core_model.device import DTYPES
from core_model.disk import why_not_written
from core_model.errors import CheckpointError, ConfigError
from core_model.wording import shown, some_of

if TYPE_CHECKING:
    from core_model.nn.transformer import Transformer


def convert(
    path: Path,
    folder: Path,
    family: str | None = None,
    *,
    assume: Mapping[str, object] | None = None,
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> Family:
    """Write the checkpoint at `path` into a new folder as `family`, and return that family. Runs on a worker thread.

    Without a family, the one it is of where that can express it, else the first that can. Weights all stored in half
    precision stay in it. ConfigError when the family, or every one, lacks a word for something of the model;
    CheckpointError when no model can be made of the files, or the folder is in use.
    """
    check_new(folder)
    with open_checkpoint(path, assume=assume) as checkpoint:
        return convert_opened(
            checkpoint, folder, family, lambda: checkpoint.load_model(cancel=cancel, progress=progress)
        )


def convert_opened(checkpoint: Checkpoint, folder: Path, family: str | None, load: Callable[[], Transformer]) -> Family:
    """The same with a checkpoint that is open, and its model, which stays as it is. `load` is called last."""
    check_new(folder)
    info, config = checkpoint.info, checkpoint.config
    if info.refusal is not None or config is None:
        raise CheckpointError(f"{info.name} cannot be converted: {info.refusal}", path=info.path)
    chosen = _only_that(config, family) if family else _best(config, info.name, info.family)
    model, dtype = load(), DTYPES.get(info.dtype)
    try:
        save_as_family(folder, model, chosen.key, inputs=checkpoint.input_files, dtype=dtype)
    except OSError as error:
        told = why_not_written(error, folder)
        raise CheckpointError(f"{shown(folder)} cannot be written: {told}", path=folder) from error
    return chosen


def _only_that(config: ModelConfig, key: str) -> Family:
    """The family of that name; ConfigError says what of the model it cannot express."""
    family = family_named(key)
    try:
        express_some_way(config, family)
    except ConfigError as error:
        others = [other.key for other in expressing_families(config)]
        next_step = f"convert to {some_of(others)} instead" if others else "no other family can either"
        raise ConfigError(f"{error}; {next_step}") from error
    return family


def _best(config: ModelConfig, name: str, own: str | None) -> Family:
    """The family a model is of, where that can express it, else the first that can."""
    families = expressing_families(config)
    if not families:
        raise ConfigError(
            f"{name} cannot be saved as a Hugging Face folder: no family of transformers has words for all of its "
            "config; --to FAMILY says what one family lacks"
        )
    return next((family for family in families if family.key == own), families[0])
