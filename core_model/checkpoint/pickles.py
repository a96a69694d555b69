"""Weights in pickles (.bin, .pt, .pth, .ckpt) rewritten as safetensors, with the person's consent only.

A pickle can run code when it is read. So none is ever read in this process: a child reads it with torch's weights-only
reader, within bounds of memory and time, and only the safetensors it writes is looked at here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from core_model.cancel import CancelToken, Progress
from core_model.checkpoint import pickle_child
from core_model.checkpoint.export import check_new
from core_model.checkpoint.families import OWN_DOCUMENTS
from core_model.checkpoint.files import SafetensorsFile, open_regular
from core_model.checkpoint.folder import (
    ADAPTER_CONFIG_NAME,
    CONFIG_NAME,
    INDEX_SUFFIX,
    INPUT_FILES,
    TRAINING_STATE,
    WEIGHTS_SUFFIX,
    model_folder,
)
from core_model.checkpoint.recognise import N_FIRST_BYTES, recognise
from core_model.checkpoint.writing import staged_folder, write_json
from core_model.disk import error_told_in, why_not_written
from core_model.errors import CheckpointError
from core_model.wording import file_name, shown, some_of

_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt")
_ADAPTER_STEM = "adapter_model"
_SHARD = re.compile(r"(?P<stem>.+)-\d+-of-\d+\.\w+")
_POLL_SECONDS = 0.05
_LEAST_SECONDS, _BYTES_A_SECOND = 120.0, 10e6
_ROOM_BYTES, _TIMES = 1 << 30, 4
"""Memory a child may take beside what torch takes: the file as read, as copied where it is shared, and some room."""
_LONGEST_PROBLEM = 1000
"""Bytes of a child's reason."""
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
"""Each thread reserves address space, which the bound on memory counts."""


def is_pickle(path: Path) -> bool:
    """Whether the file, or what a folder has for weights, is a pickle by its first bytes."""
    files = _weight_files(path) if path.is_dir() else [path] if path.is_file() else []
    return any(_begins_as_pickle(file) for file in files[:1])


def convert_pickle(
    path: Path,
    folder: Path,
    *,
    seconds: float | None = None,
    room: int | None = None,
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the weights of a pickle, or of a folder's, as safetensors into a new folder, with config and tokenizer.

    `seconds` and `room` (bytes) bound the child, by default by the file's size. Runs on a worker thread.
    CheckpointError says in a sentence why a file gives no weights.
    """
    check_new(folder)
    files = _chosen(path)
    try:
        with staged_folder(folder) as new:
            for done, file in enumerate(files):
                part = None if progress is None else _share(progress, done, len(files))
                _read_in_child(file, new / _new_name(file, len(files)), seconds, room, cancel, part)
            if len(files) > 1:
                _write_index(new)
            for name in (CONFIG_NAME, ADAPTER_CONFIG_NAME, *OWN_DOCUMENTS, *INPUT_FILES):
                if (files[0].parent / name).is_file():
                    shutil.copyfile(files[0].parent / name, new / name)
    except OSError as error:
        raise CheckpointError(
            f"{shown(folder)} cannot be written: {why_not_written(error, folder)}", path=folder
        ) from error


def _chosen(path: Path) -> list[Path]:
    """The pickles that make up one model; CheckpointError when there are none, or several models."""
    if not path.is_dir():
        if not _begins_as_pickle(path):
            raise CheckpointError(f"{file_name(path)} is no pickle of PyTorch: open it as it is", path=path)
        return [path]
    files = _weight_files(path)
    if not files:
        raise CheckpointError(f"{file_name(path)} holds no pickle of PyTorch (.bin, .pt, .pth, .ckpt)", path=path)
    stems = {match["stem"] for file in files if (match := _SHARD.fullmatch(file.name))}
    if len(files) > 1 and not (len(stems) == 1 and all(_SHARD.fullmatch(file.name) for file in files)):
        names = some_of([file_name(file) for file in files])
        raise CheckpointError(f"{file_name(path)} holds several pickles ({names}): choose which file", path=path)
    return files


def _weight_files(folder: Path) -> list[Path]:
    """A folder's files that may be pickles of weights, in order; a cache entry's are those of its snapshot."""
    try:
        held = model_folder(folder).iterdir()
        files = sorted(path for path in held if path.suffix.lower() in _SUFFIXES and path.is_file())
    except OSError as error:
        raise CheckpointError(f"{file_name(folder)} cannot be read: {error.strerror}", path=folder) from error
    return [path for path in files if not TRAINING_STATE.fullmatch(path.name)]


def _begins_as_pickle(path: Path) -> bool:
    with open_regular(path) as file:
        other = recognise(file.read(N_FIRST_BYTES))
    return other is not None and other.is_pickle


def _new_name(file: Path, n_files: int) -> str:
    """model.safetensors, the shard's own number, or what peft calls an adapter's weights."""
    if n_files == 1:
        return f"{_ADAPTER_STEM if file.stem == _ADAPTER_STEM else 'model'}{WEIGHTS_SUFFIX}"
    return f"{file.stem.replace('pytorch_model', 'model')}{WEIGHTS_SUFFIX}"


def _share(progress: Progress, done: int, n_files: int) -> Progress:
    return lambda fraction: progress((done + fraction) / n_files)


def _read_in_child(
    file: Path,
    out: Path,
    seconds: float | None,
    room: int | None,
    cancel: CancelToken | None,
    progress: Progress | None,
) -> None:
    """Have one pickle read and written; CheckpointError says why it was not, OSError why the disk refuses."""
    size = file.stat().st_size
    seconds = _LEAST_SECONDS + size / _BYTES_A_SECOND if seconds is None else seconds
    room = _ROOM_BYTES + _TIMES * size if room is None else room
    staging = out.parent.parent  # goes with what is written there, should this process be killed
    with TemporaryDirectory(dir=staging, ignore_cleanup_errors=True) as empty:
        arguments = [str(file.absolute()), str(out.absolute()), str(room)]
        with subprocess.Popen(
            [sys.executable, "-P", pickle_child.__file__, *arguments],
            cwd=empty,
            env={**os.environ, **_ONE_THREAD},
            stdin=subprocess.PIPE,  # which ends with this process: the child then ends too
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as child:
            try:
                status = _wait(child, file, out, seconds, cancel, progress)
            finally:
                child.kill()
            assert child.stdout is not None
            reason = child.stdout.read(_LONGEST_PROBLEM).decode(errors="replace") if status else ""
        if status == pickle_child.UNWRITABLE and (refused := error_told_in(reason, out)):
            raise refused
        if status != 0:
            told = reason or "made the process that read it end: do not trust it, or ask for safetensors"
            raise CheckpointError(f"{file_name(file)} {told}", path=file)
    SafetensorsFile(out).close()  # what a child wrote is checked like any file


def _wait(
    child: subprocess.Popen[bytes],
    file: Path,
    out: Path,
    seconds: float,
    cancel: CancelToken | None,
    progress: Progress | None,
) -> int:
    """The child's exit status; Cancelled, or CheckpointError when its time is over."""
    size, end = max(file.stat().st_size, 1), time.monotonic() + seconds
    while True:
        try:
            return child.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if cancel is not None:
                cancel.check()
            if time.monotonic() > end:
                raise CheckpointError(
                    f"{file_name(file)} was not read within {seconds:.0f} s: do not trust it, or ask for safetensors",
                    path=file,
                ) from None
            if progress is not None and out.exists():
                progress(min(out.stat().st_size / size, 1.0))


def _write_index(folder: Path) -> None:
    """The index of the shards in a folder, which transformers wants."""
    weight_map: dict[str, str] = {}
    total = 0
    for path in _shards(folder):
        file = SafetensorsFile(path)
        weight_map |= dict.fromkeys(file.entries, path.name)
        total += sum(entry.n_bytes for entry in file.entries.values())
        file.close()
    write_json(folder / f"model{INDEX_SUFFIX}", {"metadata": {"total_size": total}, "weight_map": weight_map})


def _shards(folder: Path) -> Sequence[Path]:
    return sorted(folder.glob(f"*{WEIGHTS_SUFFIX}"))
