"""The tensors of one model, whether they lie in one file or in several with an index.

An index (`model.safetensors.index.json`) maps tensor names to files beside it. The files' own headers are believed over
a stale index; what does not fit together is said in `warnings`.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core_model.checkpoint.files import SafetensorsFile, is_file_name
from core_model.checkpoint.header import Entry
from core_model.checkpoint.json_text import read_json
from core_model.errors import CheckpointError
from core_model.pieces import Numbers
from core_model.results import FloatArray
from core_model.wording import counted, file_name, shown, some_of


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """A tensor of a file as a PiecewiseArray: nothing is held, and every number is what the file says."""

    file: SafetensorsFile
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        """As stored."""
        return self.file.entries[self.name].shape

    @property
    def is_readable(self) -> bool:
        """Whether numbers of its type can be shown."""
        return self.file.entries[self.name].dtype.exact is not None

    def pieces(self, begin: int = 0, end: int | None = None) -> Iterator[tuple[slice, Numbers]]:
        """See `SafetensorsFile.exact_pieces`."""
        return self.file.exact_pieces(self.name, begin, end)


class TensorStore:
    """Open safetensors files read as one set of named tensors."""

    def __init__(self, files: Sequence[SafetensorsFile], chosen: Mapping[str, Path] | None = None) -> None:
        """The tensors of all files; where two hold one name, the one `chosen` names wins, else the first."""
        self._files = tuple(files)
        self._home: dict[str, SafetensorsFile] = {}
        chosen = chosen or {}
        warnings = []
        for file in self._files:
            for name in file.entries:
                first = self._home.get(name)
                if first is None:
                    self._home[name] = file
                    continue
                if chosen.get(name) == file.path:
                    self._home[name] = file
                warnings.append(
                    f"{shown(name)} is stored twice, in {file_name(first.path)} and {file_name(file.path)}: "
                    f"the one in {file_name(self._home[name].path)} is used"
                )
        self.warnings = tuple(warnings)
        self.entries: Mapping[str, Entry] = {name: file.entries[name] for name, file in self._home.items()}
        """What each header says of its tensors."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files read, in order."""
        return tuple(file.path for file in self._files)

    @property
    def metadata(self) -> Mapping[str, str]:
        """The free text of all headers; the first file's word counts where they differ."""
        return {key: text for file in reversed(self._files) for key, text in file.metadata.items()}

    def file_of(self, name: str) -> Path:
        """The file that holds the tensor."""
        return self._home[name].path

    def read(self, name: str, begin: int = 0, end: int | None = None) -> FloatArray:
        """See `SafetensorsFile.read`; CheckpointError for a name the model has not."""
        return self._holder(name).read(name, begin, end)

    def pieces(self, name: str) -> Iterator[tuple[slice, FloatArray]]:
        """See `SafetensorsFile.pieces`."""
        return self._holder(name).pieces(name)

    def tensor(self, name: str) -> StoredTensor:
        """A tensor to be read in pieces; CheckpointError for a name the model has not."""
        return StoredTensor(self._holder(name), name)

    def digest(self, *more: bytes) -> str:
        """sha256, as hex digits, of all headers and of more bytes given."""
        total = hashlib.sha256()
        for part in (*(file.header_digest for file in self._files), *more):
            total.update(part)
        return total.hexdigest()

    def close(self) -> None:
        """Release all files."""
        for file in self._files:
            file.close()

    def _holder(self, name: str) -> SafetensorsFile:
        """The file that holds the tensor; CheckpointError when none does."""
        if name not in self._home:
            raise CheckpointError(f"there is no tensor named {shown(name)}", tensor=name)
        return self._home[name]


def open_files(paths: Sequence[Path], chosen: Mapping[str, Path] | None = None) -> TensorStore:
    """Open the files as one store; when one fails, those already open are released."""
    files: list[SafetensorsFile] = []
    try:
        for path in paths:
            files.append(SafetensorsFile(path))
    except BaseException:
        for file in files:
            file.close()
        raise
    return TensorStore(files, chosen)


def read_index(path: Path) -> dict[str, Path]:
    """Tensor name -> file beside the index; CheckpointError for a broken index or a path outside its folder."""
    weight_map = read_json(path).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        raise CheckpointError(
            f"{file_name(path)} has no weight_map from tensor names to file names: download the index again", path=path
        )
    if not weight_map:
        raise CheckpointError(f"{file_name(path)} has an empty weight_map: download the index again", path=path)
    for name, file in weight_map.items():
        if not is_file_name(file):
            raise CheckpointError(
                f"{file_name(path)} puts {shown(name)} in {shown(repr(file))}: only the name of a file beside the "
                "index is a valid path, nothing outside its folder is read or fetched",
                path=path,
                tensor=name,
            )
    return {name: path.parent / file for name, file in weight_map.items()}


def missing_shards(index: Mapping[str, Path]) -> dict[Path, list[str]]:
    """The files an index names that are not there, each with its tensors."""
    tensors_of: dict[Path, list[str]] = defaultdict(list)
    for name, file in index.items():
        tensors_of[file].append(name)
    return {file: names for file, names in tensors_of.items() if not file.exists()}


def open_index(path: Path) -> tuple[TensorStore, tuple[str, ...]]:
    """Open all shards an index names; also what the index says that the shards do not."""
    index = read_index(path)
    for file, names in missing_shards(index).items():
        raise CheckpointError(
            f"{file_name(file)} is missing: the index puts {counted(len(names), 'tensor')} in it ({some_of(names)}). "
            "Download that file, or open a shard that is there to see its tensors",
            path=file,
        )
    shards = sorted(set(index.values()))
    store = open_files(shards, index)
    held = store.entries
    doubts = []
    if absent := [name for name in index if name not in held]:
        doubts.append(f"the index names {counted(len(absent), 'tensor')} missing from every shard: {some_of(absent)}")
    if moved := [name for name in index if name in held and store.file_of(name) != index[name]]:
        doubts.append(
            f"the index puts {counted(len(moved), 'tensor')} in another shard than holds them: {some_of(moved)}"
        )
    if unlisted := [name for name in held if name not in index]:
        doubts.append(
            f"the shards hold {counted(len(unlisted), 'tensor')} the index does not list: {some_of(unlisted)}"
        )
    return store, tuple(doubts)
