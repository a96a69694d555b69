"""Writing a model folder: what is on disk is complete at any time, and nothing of anybody else's is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from core_model.disk import error_told_in
from core_model.errors import CheckpointError

if TYPE_CHECKING:
    import torch

WEIGHTS_NAME = "model.safetensors"
_STAGING, _LOCK_NAME = ".saving-", ".lock"


@contextmanager
def staged_folder(folder: Path) -> Iterator[Path]:
    """A new, empty folder to write into, whose files come into `folder` when the block ends without an error.

    A folder that is new or empty appears whole, at once. In one that holds files already each file of the same name is
    replaced at once, and the others, which may be somebody's, stay. Nothing changes on an error of the block.
    CheckpointError where the path is a file; OSError when the disk refuses, or on Windows where a file to be replaced
    is held open: that one and those after it by name are then the old ones. What a killed writer left beside the folder
    is removed first.
    """
    from filelock import FileLock

    if folder.exists() and not folder.is_dir():
        raise CheckpointError(f"{folder} is a file: choose another folder", path=folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(folder.parent)
    with (
        TemporaryDirectory(prefix=_STAGING, dir=folder.parent, ignore_cleanup_errors=True) as beside,
        FileLock(Path(beside, _LOCK_NAME)),
    ):
        new = Path(beside, folder.name)
        new.mkdir()
        yield new
        if folder.is_dir() and any(folder.iterdir()):
            for file in sorted(new.iterdir()):
                file.replace(folder / file.name)
        else:
            if folder.is_dir():
                folder.rmdir()
            new.rename(folder)


def _remove_abandoned(parent: Path) -> None:
    """Remove what is staged in the folder by nobody any more: a lock ends with the process that holds it."""
    from filelock import FileLock

    for left in parent.glob(f"{_STAGING}*"):
        if (left / _LOCK_NAME).exists():
            with suppress(OSError), FileLock(left / _LOCK_NAME, timeout=0):  # it is held, or another user's
                shutil.rmtree(left, ignore_errors=True)


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
        if refused := error_told_in(str(error), path):
            raise refused from error
        raise
    path.chmod(usual_mode)  # the library makes its files readable by their owner alone, whatever the umask


def write_json(path: Path, document: object, *, indent: int | None = None) -> None:
    """A JSON file; infinite numbers and NaN, which JSON has not, are refused with ValueError."""
    path.write_text(json.dumps(document, indent=indent, allow_nan=False) + "\n", encoding="utf-8")
