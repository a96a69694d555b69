"""How a picture or a sound becomes what a checkpoint reads: as the file beside its weights says, or as is usual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.folder import PREPROCESSOR_NAME, PROCESSOR_NAME, Location
from core_model.checkpoint.json_text import read_json
from core_model.checkpoint.reading import Reading
from core_model.config import AudioEmbedding, PatchEmbedding, StackConfig
from core_model.errors import CheckpointError, InputError
from core_model.preprocess import picture_settings, sounds
from core_model.preprocess.picture_settings import PictureSettings
from core_model.preprocess.sounds import SoundSettings
from core_model.results import Fact, Origin

_USUAL_POSITIONS = 1500
"""Of Whisper's encoder: 30 s."""


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """What is done with files; `problem` is why nothing can be. `facts` and `warnings` are for the model card."""

    picture: PictureSettings | None = None
    sound: SoundSettings | None = None
    problem: str | None = None
    facts: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()


def find_preprocessing(location: Location, reading: Reading) -> Preprocessing:
    """What is done with pictures or sounds for a model; nothing for one that reads neither."""
    stacks = reading.config.stacks.values() if reading.config else ()
    read = next((stack for stack in stacks if isinstance(stack.embedding, PatchEmbedding | AudioEmbedding)), None)
    if read is None:
        return Preprocessing()
    kind = "picture" if isinstance(read.embedding, PatchEmbedding) else "sound"
    try:
        if isinstance(read.embedding, PatchEmbedding):
            assert reading.family is not None, "whatever has a config is of a family"
            return _of_pictures(location, reading.family, read.embedding)
        assert isinstance(read.embedding, AudioEmbedding)
        return _of_sounds(location, read, read.embedding)
    except (InputError, CheckpointError) as error:
        return Preprocessing(problem=str(error), warnings=(f"no {kind} can be read: {error}",))


def _of_pictures(location: Location, family: str, patches: PatchEmbedding) -> Preprocessing:
    file, document = _document(location, "image_processor")
    timm = read_json(location.config).get("pretrained_cfg") if location.config else None
    if document is not None:
        settings = picture_settings.stated_settings(document, family, patches.n_channels, file)
    elif isinstance(timm, Mapping):
        settings, file = picture_settings.timm_settings(timm, patches.n_channels), "config.json"
    else:
        settings, file = picture_settings.usual_settings(family, patches.image_size, patches.n_channels), ""
    return Preprocessing(
        picture=settings, facts=(_fact("pictures", settings.summary, file),), warnings=_warnings(settings.summary, file)
    )


def _of_sounds(location: Location, stack: StackConfig, audio: AudioEmbedding) -> Preprocessing:
    file, document = _document(location, "feature_extractor")
    n_frames = (stack.max_length or _USUAL_POSITIONS) * audio.stride
    stated = {"feature_size": audio.n_features} if document is None else document
    settings = sounds.stated_settings(stated, audio.n_features, n_frames, file or "the usual settings")
    return Preprocessing(
        sound=settings, facts=(_fact("sounds", settings.summary, file),), warnings=_warnings(settings.summary, file)
    )


def _document(location: Location, part: str) -> tuple[str, Mapping[str, Any] | None]:
    """The settings beside the weights and the name of their file; empty and None where there are none."""
    folder = location.preprocessor_folder
    newer, older = folder / PROCESSOR_NAME, folder / PREPROCESSOR_NAME
    if newer.exists() and isinstance(found := read_json(newer).get(part), Mapping):
        return PROCESSOR_NAME, found
    return (PREPROCESSOR_NAME, read_json(older)) if older.exists() else ("", None)


def _fact(name: str, summary: str, file: str) -> Fact:
    origin: Origin = "stated" if file else "inferred"
    return Fact(name=name, value=summary, origin=origin)


def _warnings(summary: str, file: str) -> tuple[str, ...]:
    if file:
        return ()
    return (f"there is no {PREPROCESSOR_NAME}: files are read as is usual of the family ({summary})",)
