"""Broken and hostile folders, opened as a person opens them: a model, a browser or CoreError, and nothing else happens.

Each kind is drawn as often as the hypothesis profile says: 900 cases in all, 22 500 by `--hypothesis-profile nightly`.
"""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_model.analysis.tensor_statistics import tensor_statistics
from core_model.checkpoint import Checkpoint, open_checkpoint
from core_model.config import AudioEmbedding, ModelConfig, PatchEmbedding
from core_model.errors import CoreError
from core_model.trace import Inputs, run_trace

if sys.platform != "linux":
    pytest.skip("the guards are Linux's: audit of the address space, alarms", allow_module_level=True)

from tests.core_model.checkpoint.fuzz import guards, hostile, wholes
from tests.core_model.checkpoint.fuzz.guards import Broken, guarded
from tests.core_model.checkpoint.fuzz.wholes import Folder

TEXT = "the cat sat on the mat"
LONGEST_SENTENCE = 1000


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for cases; everything that a case may import has been imported."""
    folder = tmp_path_factory.mktemp("cases")
    for number, whole in enumerate(wholes.every()):
        _outcome(_written(whole, folder / f"whole {number}"))
        shutil.rmtree(folder / f"whole {number}")
    return folder


@pytest.mark.parametrize("kind", hostile.KINDS)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example])
@given(data=st.data())
def test_a_broken_folder_is_a_model_a_browser_or_a_sentence(kind: str, data: st.DataObject, scratch: Path) -> None:
    case = data.draw(hostile.KINDS[kind]())
    opened = data.draw(st.just(".") | st.sampled_from([".", *case]))
    folder = _written(case, scratch / "case")
    try:
        with guarded(folder):
            outcome = _outcome(folder / opened)
        assert outcome in ("model", "browser", "error")
        assert _read(folder) == case, "the folder was changed"
        assert [path.name for path in scratch.iterdir()] == ["case"], "something was left beside the folder"
    finally:
        shutil.rmtree(folder)
        gc.collect(1)  # which no test does by itself: errors in cycles would fill the memory


def test_what_is_broken_there_is_whole_here(scratch: Path) -> None:
    broken = []
    for key, whole in wholes.of_families().items():
        folder = _written(whole, scratch / "whole")
        with guarded(folder):
            if _outcome(folder) != "model":
                broken.append(key)
        shutil.rmtree(folder)
    assert not broken


def test_the_guards_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.write_bytes(b"x")
    folder.mkdir()
    for forbidden in (
        lambda: outside.read_bytes(),
        lambda: (folder / "new").touch(),
        lambda: (folder / "new").mkdir(),
        lambda: subprocess.run(["true"]),
        lambda: os.system("true"),
        lambda: socket.create_connection(("127.0.0.1", 9)),
        lambda: pickle.loads(b"cos\nsystem\n."),
    ):
        with pytest.raises(Broken), guarded(folder):
            forbidden()
    with pytest.raises(MemoryError), guarded(folder):
        np.empty(8 << 30, dtype=np.uint8)  # more than earlier tests can have left to be used again
    monkeypatch.setattr(guards, "SECONDS", 0.01)
    with pytest.raises(Broken, match="took more than"), guarded(folder):
        while True:
            pass


def _written(case: Folder, folder: Path) -> Path:
    for name, content in case.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    folder.mkdir(exist_ok=True)
    return folder


def _read(folder: Path) -> Folder:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _outcome(path: Path) -> str:
    """What becomes of a folder or a file that is opened, looked through, loaded and run."""
    try:
        checkpoint = open_checkpoint(path)
    except CoreError as error:
        return _told(error, "error")
    with checkpoint:
        try:
            _look_through(checkpoint)
        except CoreError as error:
            _told(error, "browser")
        try:
            model = checkpoint.load_model()
        except CoreError as error:
            return _told(error, "browser")
        try:
            trace = run_trace(model, _inputs(checkpoint))
            trace.attention(trace.sites[0], layer=0, head=0)
        except CoreError as error:
            return _told(error, "error")
    return "model"


def _told(error: CoreError, outcome: str) -> str:
    """The outcome, when the error is one line that a person can read."""
    text = str(error)
    assert text and text.isprintable() and len(text) <= LONGEST_SENTENCE, repr(text)
    return outcome


def _look_through(checkpoint: Checkpoint) -> None:
    """What the tensor browser and the card do."""
    info = checkpoint.check_health()
    told = (info.name, info.summary, *info.warnings, *(f"{fact.name}: {fact.value}" for fact in info.facts))
    assert all(line.isprintable() for line in told), told
    for name in [*checkpoint.tensors][:3]:
        tensor_statistics(checkpoint.tensor(name))


def _inputs(checkpoint: Checkpoint) -> Inputs:
    """A text where the model has a tokenizer, a file where there is one, else something of the right kind."""
    if "text" in checkpoint.info.reads:
        return checkpoint.encode(TEXT)
    if (picture := checkpoint.folder / wholes.PICTURE).exists():
        return checkpoint.encode(picture=picture)
    if (sound := checkpoint.folder / wholes.SOUND).exists():
        return checkpoint.encode(sound=sound, target=None)
    config = checkpoint.config
    assert config is not None
    return _typed(config)


def _typed(config: ModelConfig) -> Inputs:
    """Ids, pixels or features of the sizes the config asks for, where they are small."""
    kinds = [stack.embedding for stack in config.stacks.values()]
    patches = next((kind for kind in kinds if isinstance(kind, PatchEmbedding)), None)
    sound = next((kind for kind in kinds if isinstance(kind, AudioEmbedding)), None)
    beside = [1, 2] if config.encoder and config.decoder else None
    if sound is not None:
        return Inputs(features=np.ones((min(sound.n_features, 64), 16)), decoder_ids=beside)
    if patches is not None and len(kinds) == 1:
        return Inputs(pixels=np.ones((min(patches.n_channels, 8), 8, 8)))
    return Inputs(ids=[1, 2, 3, 4], decoder_ids=beside)
