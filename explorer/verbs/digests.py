"""The sha256 of whole files, as `sha256sum` prints it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from core_model.cancel import Progress
from core_model.errors import CheckpointError

_PIECE = 1 << 22


def file_digests(paths: Iterable[Path], progress: Progress) -> dict[Path, str]:
    """The sha256 of each file, read in pieces. Raises CheckpointError naming the file that cannot be read."""
    files = list(dict.fromkeys(paths))
    found: dict[Path, str] = {}
    for path in files:
        digest = hashlib.sha256()
        try:
            with path.open("rb") as file:
                n_bytes = max(1, path.stat().st_size)
                while piece := file.read(_PIECE):
                    digest.update(piece)
                    progress((len(found) + min(1.0, file.tell() / n_bytes)) / len(files))
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error.strerror}", path=path) from error
        found[path] = digest.hexdigest()
    return found
