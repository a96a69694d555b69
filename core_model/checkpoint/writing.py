"""Writing a model folder all at once: what is on disk is always a complete one, the old or the new."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from core_model.errors import CheckpointError

if TYPE_CHECKING:
    import torch

WEIGHTS_NAME = "model.safetensors"
CONFIG_NAME = "config.json"


@contextmanager
def replaced_folder(folder: Path) -> Iterator[Path]:
    """A new, empty sibling to write into, which takes the folder's place when the block ends without an error.

    Nothing changes on an error. CheckpointError where the path is a file; OSError when the disk refuses.
    """
    if folder.exists() and not folder.is_dir():
        raise CheckpointError(f"{folder} is a file: choose another folder", path=folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    new, old = folder.with_name(f".{folder.name}.new"), folder.with_name(f".{folder.name}.old")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    try:
        yield new
        _exchange(folder, new, old)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _exchange(folder: Path, new: Path, old: Path) -> None:
    if not folder.exists():
        new.rename(folder)
        return
    shutil.rmtree(old, ignore_errors=True)
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise


def write_weights(folder: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """model.safetensors in the folder. OSError when the disk refuses."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    path = folder / WEIGHTS_NAME
    path.touch()
    usual_mode = path.stat().st_mode
    try:
        save_file(on_cpu, path, metadata={"format": "pt"})
    except SafetensorError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error
    path.chmod(usual_mode)  # the library makes its files readable by their owner alone, whatever the umask


def write_json(path: Path, document: object, *, indent: int | None = None) -> None:
    """A JSON file; infinite numbers and NaN, which JSON has not, are refused with ValueError."""
    path.write_text(json.dumps(document, indent=indent, allow_nan=False) + "\n", encoding="utf-8")
