"""Why a disk refuses, in our words."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from core_model.checkpoint import writing
from core_model.disk import existing_parent, why_not_written


def test_of_a_full_disk_it_is_said_how_much_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=3 << 20))
    said = why_not_written(OSError(errno.ENOSPC, "No space left on device"), tmp_path / "new" / "run")
    assert said == "the disk is full (3 MiB free); free some space or choose another disk"


def test_what_we_have_no_words_for_is_said_in_the_systems(tmp_path: Path) -> None:
    assert why_not_written(OSError(errno.EBUSY, "Resource busy"), tmp_path) == "Resource busy; choose another place"


def test_a_path_that_is_not_there_lies_on_the_disk_of_what_is_above_it(tmp_path: Path) -> None:
    assert existing_parent(tmp_path / "a" / "b") == tmp_path


def test_a_disk_that_fills_while_the_weights_are_written_is_the_systems_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """safetensors wraps it into a sentence of its own."""
    import safetensors.torch

    def refuse(*_: object, **__: object) -> None:
        raise safetensors.SafetensorError(
            'Error while serializing: I/O error: Os { code: 28, kind: StorageFull, message: "No space left on device" }'
        )

    monkeypatch.setattr(safetensors.torch, "save_file", refuse)
    with pytest.raises(OSError) as caught:
        writing.write_weights(tmp_path, {})
    assert caught.value.errno == errno.ENOSPC and caught.value.strerror == os.strerror(errno.ENOSPC)
