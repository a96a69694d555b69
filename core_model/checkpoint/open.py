"""Opening a checkpoint: what lies at a path, read as far as it can be without loading its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from core_model.cancel import CancelToken, Progress
from core_model.checkpoint import native
from core_model.checkpoint.adapter import find_base, open_merged
from core_model.checkpoint.describe import describe, describe_tensors
from core_model.checkpoint.folder import Location, locate
from core_model.checkpoint.giving import Giver
from core_model.checkpoint.health import TensorHealth, examine, health_warnings
from core_model.checkpoint.matching import Match
from core_model.checkpoint.preprocessing import find_preprocessing
from core_model.checkpoint.reading import Reading, read_checkpoint
from core_model.checkpoint.run_record import read_run
from core_model.checkpoint.shards import StoredTensor, TensorStore
from core_model.checkpoint.text import find_tokenizer
from core_model.config import ModelConfig
from core_model.errors import CheckpointError, InputError
from core_model.results import ByteArray, FloatArray, ModelInfo, RunInfo, TensorInfo
from core_model.tokenize import Tokenizer
from core_model.trace.inputs import Inputs

if TYPE_CHECKING:
    from core_model.nn.transformer import Transformer


def open_checkpoint(path: str | Path, *, assume: Mapping[str, object] | None = None) -> Checkpoint:
    """Open a folder, a .safetensors file, an index, a shard, a config.json, a run folder or a cache entry.

    `assume` gives facts no file states, such as {"n_heads": 4}. A LoRA adapter is merged with its base, which is
    found beside it or in the Hub's local cache, or given as {"base": path}. CheckpointError says why nothing can be
    read; a file whose tensors make no known model opens all the same, and `info.refusal` says why attention is not
    offered.
    """
    location, given = locate(Path(path)), dict(assume or {})
    if location.adapter_config is not None:
        return _open_adapter(location, given)
    store, notes = location.open()
    return _checkpoint(location, store, notes, lambda: read_checkpoint(location, store, given))


def _open_adapter(location: Location, given: dict[str, object]) -> Checkpoint:
    """An adapter merged with its base; where that cannot be, its own tensors and the reason."""
    named = given.pop("base", None)
    try:
        base = find_base(location) if named is None else Path(str(named))
        merged = None if base is None else open_merged(location, base)
    except CheckpointError as error:
        merged, reading = None, Reading(problem=error, needs=("base",))
    else:
        reading = None
    if merged is None:
        store, notes = location.open()
        return _checkpoint(location, store, notes, lambda: reading or read_checkpoint(location, store, given))

    def read() -> Reading:
        resized = ("vocab_size",) if merged.is_resized else ()
        found = read_checkpoint(merged.location, merged.store, given, resized=resized)
        return replace(found, facts=(merged.fact, *found.facts))

    return _checkpoint(merged.location, merged.store, merged.notes, read)


def _checkpoint(
    location: Location, store: TensorStore, notes: tuple[str, ...], read: Callable[[], Reading]
) -> Checkpoint:
    """The checkpoint; its files are released when it cannot be made."""
    try:
        return Checkpoint(location, store, read(), notes)
    except BaseException:
        store.close()
        raise


class Checkpoint:
    """An open checkpoint: its card, its tensors, its tokenizer. Files stay open until `close`."""

    def __init__(self, location: Location, store: TensorStore, reading: Reading, notes: tuple[str, ...]) -> None:
        preprocessing = find_preprocessing(location, reading)
        reading = replace(reading, facts=(*reading.facts, *preprocessing.facts))
        self._location, self._store, self._reading = location, store, reading
        kind = reading.model_type or reading.family
        self._tokenizer, self._tokenizer_notes = find_tokenizer(location.tokenizer_folder, kind, reading.config)
        self._run, run_notes = _run_of(location, reading)
        self._notes = (*notes, *self._tokenizer_notes, *preprocessing.warnings, *run_notes)
        self._giver = None
        if reading.config is not None:
            self._giver = Giver(
                name=location.name, config=reading.config, tokenizer=self._tokenizer, preprocessing=preprocessing
            )
        self._tensors = MappingProxyType(describe_tensors(store, reading))
        self._info = self._describe(self._notes)
        self._health: dict[str, TensorHealth] = {}

    @property
    def info(self) -> ModelInfo:
        """The model card; loading adds to its warnings what it finds in the values."""
        return self._info

    @property
    def tensors(self) -> Mapping[str, TensorInfo]:
        """The stored tensors by name; values are read by `read_tensor`."""
        return self._tensors

    @property
    def folder(self) -> Path:
        """Where its config lies."""
        return self._location.folder

    @property
    def input_files(self) -> tuple[Path, ...]:
        """The files that say how text, pictures and sounds become numbers."""
        return self._location.input_files

    @property
    def config(self) -> ModelConfig | None:
        """The model's config; None when no known model was recognised."""
        return self._reading.config

    @property
    def tokenizer(self) -> Tokenizer | None:
        """What turns text into this model's ids; None when there is none or it is broken (a warning says so)."""
        return self._tokenizer

    @property
    def no_tokenizer(self) -> str:
        """Why there is no tokenizer, and what to do then; empty where there is one or no token is read."""
        return "" if self._tokenizer else next(iter(self._tokenizer_notes), "")

    def encode(
        self,
        text: str | None = None,
        pair: str | None = None,
        target: str | None = None,
        *,
        picture: Path | None = None,
        sound: Path | None = None,
    ) -> Inputs:
        """What was given, as inputs of this model; `info.reads` says what it takes.

        `target` is what a decoder beside an encoder is fed, after its start token. Without one, the decoder of a
        classifier is fed the text again, as it was trained (BART, T5). Two towers take a text, a picture or both.
        TokenizerError without a tokenizer, or for text it cannot express; InputError for a file that is no picture or
        no sound, and for what this model does not read; what `info.refusal` says where no model can be built.
        """
        if self._giver is None:
            assert self._reading.problem is not None, "there is a reason where there is no config"
            raise self._reading.problem.with_traceback(None)
        return self._giver.inputs(text, pair, target, picture=picture, sound=sound)

    def as_seen(self, pixels: FloatArray) -> ByteArray:
        """Pixels [K, Y, X] that it reads as the picture [Y, X, 3] they are of, 0 to 255: scaled back, still cut out.

        InputError where its settings for pictures are not known.
        """
        settings = self._giver.preprocessing.picture if self._giver else None
        if settings is None:
            raise InputError(f"{self._location.name} reads no pictures: there is none to show")
        from core_model.preprocess.seen import as_seen

        return as_seen(pixels, settings)

    def load_model(
        self,
        device: str = "cpu",
        dtype: str = "float32",
        *,
        cancel: CancelToken | None = None,
        progress: Progress | None = None,
    ) -> Transformer:
        """The model with its weights, in evaluation mode. Runs on a worker thread; needs at most 1.1 times its size.

        CheckpointError or ConfigError, as `info.refusal` says, when no model can be built from these files.
        """
        matched, reading = self._require_model(), self._reading
        assert reading.config is not None
        from core_model.checkpoint.loading import load_transformer

        model, health = load_transformer(
            reading.config, matched, self._store, device=device, dtype=dtype, cancel=cancel, progress=progress
        )
        self._tell_health(health)
        return model

    def check_health(self, *, cancel: CancelToken | None = None, progress: Progress | None = None) -> ModelInfo:
        """The model card with what all stored values say of their health: see `health`. Runs on a worker thread.

        Reads the files once, in pieces. Loading the model tells the same of the tensors it reads.
        """
        self._tell_health(examine(self._store, self._store.entries, cancel=cancel, progress=progress))
        return self._info

    def _tell_health(self, found: Sequence[TensorHealth]) -> None:
        """Add to what was found before."""
        self._health |= {one.name: one for one in found}
        sites = self._reading.match.sites if self._reading.match else {}
        told = health_warnings(tuple(self._health.values()), sites)
        self._info = self._describe((*self._notes, *told))

    def _describe(self, warnings: tuple[str, ...]) -> ModelInfo:
        reads = self._giver.reads if self._giver else ()
        return replace(describe(self._location, self._store, self._reading, reads, warnings), run=self._run)

    def read_tensor(self, name: str) -> FloatArray:
        """A stored tensor's values, widened to float32. CheckpointError when there is none of that name."""
        return self._store.read(name)

    def tensor(self, name: str) -> StoredTensor:
        """A stored tensor, read in pieces when looked at. CheckpointError when there is none of that name."""
        return self._store.tensor(name)

    def read_weight(self, name: str) -> FloatArray:
        """A weight by our name ("decoder.layers.0.attention.query.weight"), whatever it is stored as.

        CheckpointError or ConfigError when no model can be built from these files. Runs on a worker thread.
        """
        matched = self._require_model()
        from core_model.checkpoint.weights import read_weight

        return read_weight(matched, self._store, name)

    def _require_model(self) -> Match:
        """The match of a model that can be built; raises what stands in the way."""
        if self._reading.problem is not None:
            raise self._reading.problem.with_traceback(None)
        assert self._reading.match is not None
        return self._reading.match

    def close(self) -> None:
        """Release the files; what was loaded stays usable."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _run_of(location: Location, reading: Reading) -> tuple[RunInfo | None, tuple[str, ...]]:
    """The training of a model of our own, and what is wrong with what was kept of it."""
    if reading.family != native.FAMILY:
        return None, ()
    try:
        return read_run(location.folder), ()
    except CheckpointError as error:
        return None, (str(error),)
