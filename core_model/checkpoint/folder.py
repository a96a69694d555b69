"""What lies at a path: which weight files make up the model, and the folder its config and tokenizer lie in.

Only names and first bytes are looked at. "._" files, which macOS leaves beside real ones, are never seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core_model.checkpoint.files import open_regular
from core_model.checkpoint.hub_cache import broken_links, cached_name, snapshot_of, told_broken
from core_model.checkpoint.recognise import N_FIRST_BYTES, recognise
from core_model.checkpoint.shards import TensorStore, missing_shards, open_files, open_index, read_index
from core_model.errors import CheckpointError, PickleError
from core_model.wording import counted, file_name, shown, some_of

WEIGHTS_SUFFIX = ".safetensors"
INDEX_SUFFIX = ".safetensors.index.json"
CONFIG_NAME = "config.json"
ADAPTER_CONFIG_NAME = "adapter_config.json"
PIPELINE_NAME = "model_index.json"
PREPROCESSOR_NAME, PROCESSOR_NAME = "preprocessor_config.json", "processor_config.json"
"""What is done with pictures and sounds; newer versions of transformers have it in a part of the second, which wins."""
PREPROCESSOR_FILES = (PREPROCESSOR_NAME, PROCESSOR_NAME)
VOCABULARY_FILES = (
    "tokenizer.json",
    "vocab.json",
    "vocab.txt",
    "tokenizer.model",
    "tokenizer.model.v1",
    "tokenizer.model.v2",
    "tokenizer.model.v3",
    "tekken.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "source.spm",
    "native_tokenizer.json",
)
"""Where one of these is, a tokenizer is."""
TOKENIZER_FILES = (
    *VOCABULARY_FILES,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
    "target.spm",
    "chat_template.jinja",
)
INPUT_FILES = (*TOKENIZER_FILES, *PREPROCESSOR_FILES)
"""What says how text, pictures and sounds become numbers."""

_FIRST_CHOICES = ("model.safetensors", "pytorch_model.safetensors")
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d+)-of-(?P<total>\d+)\.safetensors", re.IGNORECASE)
TRAINING_STATE = re.compile(r"(training_args|optimizer|scheduler|scaler|rng_state.*)\..+")
"""Files that transformers' Trainer leaves beside the weights."""
_TRAINER_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".gguf", ".onnx", ".npz", ".pb", ".tflite")


class SeveralFilesError(CheckpointError):
    """A folder with several models in it: `choices` are the paths to ask between."""

    def __init__(self, message: str, *, path: Path, choices: Sequence[Path]) -> None:
        super().__init__(message, path=path)
        self.choices = tuple(choices)


@dataclass(frozen=True, kw_only=True)
class Location:
    """One model on disk: its weight files, or the index that names them; its folder; what was noticed on the way.

    `adapter` is the folder of the LoRA adapter that is merged with it.
    """

    name: str
    path: Path
    folder: Path
    weights: tuple[Path, ...] = ()
    index: Path | None = None
    notes: tuple[str, ...] = ()
    adapter: Path | None = None

    @property
    def tokenizer_folder(self) -> Path:
        """Where its tokenizer lies: beside the adapter, when there is one of its own."""
        return self._folder_with(VOCABULARY_FILES)

    @property
    def preprocessor_folder(self) -> Path:
        """Where it says what is done with pictures and sounds: beside the adapter, when that does."""
        return self._folder_with(PREPROCESSOR_FILES)

    @property
    def input_files(self) -> tuple[Path, ...]:
        """Those of the `INPUT_FILES` that are used."""
        paths = (
            *(self.tokenizer_folder / name for name in TOKENIZER_FILES),
            *(self.preprocessor_folder / name for name in PREPROCESSOR_FILES),
        )
        return tuple(path for path in paths if path.is_file())

    def _folder_with(self, names: Iterable[str]) -> Path:
        """The adapter's folder where it has one of the files, else the model's."""
        own = self.adapter
        return own if own is not None and any((own / name).is_file() for name in names) else self.folder

    @property
    def config(self) -> Path | None:
        """The config beside the weights, when there is one."""
        return self.beside(CONFIG_NAME)

    @property
    def adapter_config(self) -> Path | None:
        """The config of a LoRA adapter, when that is what lies here."""
        return self.beside(ADAPTER_CONFIG_NAME)

    def open(self) -> tuple[TensorStore, tuple[str, ...]]:
        """The tensors of its files, and what the index says that they do not."""
        return open_index(self.index) if self.index is not None else (open_files(self.weights), ())

    def beside(self, name: str) -> Path | None:
        """The file of that name in the model's folder, when there is one."""
        path = self.folder / name
        return path if path.exists() else None


def locate(path: Path) -> Location:
    """The model at a path: a folder, a weights file, an index, a shard, a config.json, a run folder, a cache entry.

    CheckpointError says what is there instead; SeveralFilesError asks which.
    """
    path = path.expanduser()
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        raise CheckpointError(f"{file_name(path)} cannot be opened: {error.strerror}", path=path) from error
    if is_folder:
        return _locate_folder(path)
    if not exists:
        raise CheckpointError(f"There is no file or folder {shown(path)}: check the path", path=path)
    lowered = path.name.lower()
    if lowered.endswith(INDEX_SUFFIX):
        return _location(path, index=path)
    if path.name in (CONFIG_NAME, ADAPTER_CONFIG_NAME):
        return _locate_folder(path.parent)
    if lowered.endswith(WEIGHTS_SUFFIX):
        return _locate_file(path)
    raise _not_weights(path)


def _locate_file(path: Path) -> Location:
    """One weights file: the whole model when it is a shard and the others are there, else that file alone."""
    notes: list[str] = []
    for index in _listed(path.parent, INDEX_SUFFIX):
        try:
            files = read_index(index)
        except CheckpointError as error:
            notes.append(f"the index beside it is not used: {error}")
            continue
        if path not in files.values():
            continue
        if missing := missing_shards(files):
            note = (
                f"one shard of a model whose other shards are missing: {some_of(file_name(file) for file in missing)}"
            )
            return _location(path, weights=(path,), notes=(note,))
        return _location(path, index=index, notes=(f"{file_name(path)} is one shard: the whole model was opened",))
    if (shards := _shards_like(path, _listed(path.parent, WEIGHTS_SUFFIX))) is not None:
        return _location(
            path, weights=shards, notes=(f"{file_name(path)} is one shard without an index: all shards were opened",)
        )
    return _location(path, weights=(path,), notes=tuple(notes))


def _locate_folder(folder: Path) -> Location:
    """The model in a folder; a cache entry leads to its snapshot."""
    folder = model_folder(folder)
    weights, indexes = _listed(folder, WEIGHTS_SUFFIX), _listed(folder, INDEX_SUFFIX)
    for name in _FIRST_CHOICES:
        for path in weights:
            if path.name.lower() == name:
                return _location(folder, weights=(path,))
    if indexes:
        standard = [path for path in indexes if path.name.lower() == f"model{INDEX_SUFFIX}"]
        return _location(folder, index=_only(folder, standard or indexes))
    if not weights:
        raise _nothing_to_open(folder)
    if (shards := _shards_like(weights[0], weights)) is not None and len(shards) == len(weights):
        return _location(folder, weights=shards, notes=("the shards have no index: all were opened",))
    return _location(folder, weights=(_only(folder, weights),))


def model_folder(folder: Path) -> Path:
    """The folder with a model's files: the snapshot of an entry of the Hub's cache, else the folder itself."""
    is_entry = cached_name(folder.name) is not None and (folder / "snapshots").is_dir()
    return snapshot_of(folder) if is_entry else folder


def _listed(folder: Path, suffix: str) -> list[Path]:
    """The folder's files with this ending in any case, in order, without hidden ones."""
    try:
        return sorted(
            path for path in folder.iterdir() if path.name.lower().endswith(suffix) and not path.name.startswith(".")
        )
    except OSError as error:
        raise CheckpointError(f"{file_name(folder)} cannot be read: {error.strerror}", path=folder) from error


def _shards_like(path: Path, others: Iterable[Path]) -> tuple[Path, ...] | None:
    """All shards of the set this file belongs to by its name; None when it is not a shard or the set is incomplete."""
    own = _SHARD.fullmatch(path.name)
    if own is None:
        return None
    matches = [(other, _SHARD.fullmatch(other.name)) for other in others]
    same = [(other, m) for other, m in matches if m and (m["stem"], m["total"]) == (own["stem"], own["total"])]
    numbers = {int(match["number"]) for _, match in same}
    total = int(own["total"])
    complete = len(numbers) == total and numbers in ({*range(1, total + 1)}, {*range(total)})
    return tuple(other for other, _ in same) if complete else None


def _only(folder: Path, paths: Sequence[Path]) -> Path:
    """The one path; SeveralFilesError asks when there are more."""
    if len(paths) > 1:
        raise SeveralFilesError(
            f"{file_name(folder)} holds more than one model ({some_of([file_name(path) for path in paths])}): "
            "choose which file to open",
            path=folder,
            choices=paths,
        )
    return paths[0]


def _location(
    path: Path, *, weights: tuple[Path, ...] = (), index: Path | None = None, notes: tuple[str, ...] = ()
) -> Location:
    """The location with its folder and a name people recognise; CheckpointError where a link leads nowhere."""
    folder = path if path.is_dir() else path.parent
    if broken := broken_links((*weights, *([index] if index else []), folder / CONFIG_NAME)):
        raise CheckpointError(told_broken(folder, broken), path=broken[0])
    return Location(name=_name(path), path=path, folder=folder, weights=weights, index=index, notes=notes)


def _name(path: Path) -> str:
    """What the model is called: its repository in a cache, its folder, or its file when that says more than "model"."""
    resolved = path.absolute()
    for part in resolved.parts:
        if cached := cached_name(part):
            return cached
    plain = resolved.name.lower().startswith(("model.", "model-", "pytorch_model"))
    return file_name(resolved.parent if plain and not resolved.is_dir() else resolved)


def _not_weights(path: Path) -> CheckpointError:
    """The error for a file that is not opened as a model, naming what it is."""
    with open_regular(path) as file:
        other = recognise(file.read(N_FIRST_BYTES))
    if other is not None and path.suffix.lower() != ".json":
        error = PickleError if other.is_pickle else CheckpointError
        return error(f"{file_name(path)} is {other.sentence}", path=path)
    return CheckpointError(
        f"{file_name(path)} is not a .safetensors file: open the weights or the model's folder", path=path
    )


def _nothing_to_open(folder: Path) -> CheckpointError:
    """The error for a folder without safetensors, naming what it holds instead."""
    name = file_name(folder)
    if (folder / PIPELINE_NAME).exists():
        return CheckpointError(
            f"{name} is a diffusers pipeline of several models: open one of its folders, such as text_encoder",
            path=folder,
        )
    try:
        entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        return CheckpointError(f"{name} cannot be read: {error.strerror}", path=folder)
    if cached := [path for path in entries if cached_name(path.name)]:
        return SeveralFilesError(
            f"{name} is a cache of {counted(len(cached), 'model')} ({some_of([file_name(p) for p in cached])}): "
            "choose which to open",
            path=folder,
            choices=cached,
        )
    others = [
        path
        for path in entries
        if path.suffix.lower() in _OTHER_WEIGHTS and path.is_file() and not TRAINING_STATE.fullmatch(path.name)
    ]
    if others:
        first = _not_weights(others[0])
        return type(first)(f"{name} holds no .safetensors file; {first}", path=folder)
    by_step = {int(saved[1]): path for path in entries if (saved := _TRAINER_CHECKPOINT.fullmatch(path.name))}
    if by_step:
        choices = [by_step[step] for step in sorted(by_step)]
        return SeveralFilesError(
            f"{name} holds no model, but {counted(len(choices), 'checkpoint')} of a training "
            f"({some_of([file_name(path) for path in choices])}): choose which to open",
            path=folder,
            choices=choices,
        )
    return CheckpointError(f"{name} holds no .safetensors file: open the folder of a model", path=folder)
