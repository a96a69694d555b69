"""One file of the Hub into its local cache, going on where an earlier download of it ended.

The Hub's library (2.4) begins every file anew: it writes to a name drawn at random, and removes that on an error. Here
its own parts - metadata, lock, plain transfer - fill `blobs/<etag>.incomplete`, the name that its older versions had,
which stays when a download is stopped, breaks off or is killed. The library finds the whole blob and links it as its
own. Its other way of transfer, hf_xet, can neither be stopped between two pieces nor go on later: it is not used.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from core_model.checkpoint.files import is_file_name
from core_model.checkpoint.hub_cache import entry_name
from core_model.errors import CheckpointError
from core_model.wording import shown

if TYPE_CHECKING:
    from huggingface_hub import HfFileMetadata

_UNFINISHED = ".incomplete"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PIECE_BYTES = 1 << 20
_WAIT_SECONDS = 1.0


def is_fetched(cache: Path, repository: str, commit: str, name: str) -> bool:
    """Whether the cache has the file."""
    return (cache / entry_name(repository) / "snapshots" / commit / name).exists()


def n_begun(cache: Path, repository: str) -> int:
    """Bytes that are there of files whose rest is not; what the library itself left, of a name of its own, is lost."""
    found = (cache / entry_name(repository) / "blobs").glob(f"*{_UNFINISHED}")
    return sum(path.stat().st_size for path in found if "." not in path.name.removesuffix(_UNFINISHED))


def fetch_file(
    cache: Path, endpoint: str, repository: str, commit: str, name: str, advance: Callable[[int], None]
) -> Path:
    """The file in the cache, fetched as far as it is not there. `advance` is told how many of its bytes are.

    What `advance` raises stops the transfer. CheckpointError when another program fetches the file, or when what came
    is not what the Hub names; errors of the Hub's library as they are. Runs on a worker thread.
    """
    from huggingface_hub import errors, get_hf_file_metadata, hf_hub_download, hf_hub_url

    if not is_fetched(cache, repository, commit, name):
        url = hf_hub_url(repository, name, revision=commit, endpoint=endpoint)
        metadata = get_hf_file_metadata(url, endpoint=endpoint)
        if metadata.etag is None or not is_file_name(metadata.etag):
            raise errors.FileMetadataError(f"the etag of {url} is {metadata.etag!r}")
        blob = cache / entry_name(repository) / "blobs" / metadata.etag
        if not blob.exists():
            with _locked(cache, repository, metadata.etag, name):
                _fetch_blob(blob, url, metadata, name, advance)
    found = hf_hub_download(repository, name, revision=commit, cache_dir=cache, endpoint=endpoint)
    return Path(str(found))


@contextmanager
def _locked(cache: Path, repository: str, etag: str, name: str) -> Iterator[None]:
    """Alone with a blob, by the lock of the Hub's library."""
    from huggingface_hub.utils import WeakFileLock

    path = cache / ".locks" / entry_name(repository) / f"{etag}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        try:
            held.enter_context(WeakFileLock(path, timeout=_WAIT_SECONDS))
        except TimeoutError as error:
            raise CheckpointError(
                f"another program is downloading {name} of {repository}: wait until it has done", path=path
            ) from error
        yield


def _fetch_blob(blob: Path, url: str, metadata: HfFileMetadata, name: str, advance: Callable[[int], None]) -> None:
    """The rest of a blob, which then has its own name."""
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers

    blob.parent.mkdir(parents=True, exist_ok=True)
    partial = blob.with_name(f"{blob.name}{_UNFINISHED}")
    with partial.open("ab") as file:
        if metadata.size is not None and file.tell() > metadata.size:
            file.truncate(0)
        http_get(
            url,
            file,
            resume_size=file.seek(0, 2),
            headers=build_hf_headers(),
            expected_size=metadata.size,
            displayed_filename=name,
            tqdm_class=_reporting(advance),
        )
    if _SHA256.fullmatch(blob.name) and _sha256(partial, advance) != blob.name:
        partial.unlink()
        raise CheckpointError(f"{shown(name)} arrived damaged, its sha256 is not what the Hub says: download it again")
    partial.replace(blob)


def _sha256(path: Path, advance: Callable[[int], None]) -> str:
    """The digest of a file, as hex digits."""
    digest, size = hashlib.sha256(), path.stat().st_size
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
            advance(size)
    return digest.hexdigest()


def _reporting(advance: Callable[[int], None]) -> type[Any]:
    """A progress bar for the Hub's library that draws nothing and tells how many bytes of a file are there."""

    class Reporting:
        def __init__(self, *, initial: int = 0, **drawing: object) -> None:
            self._n_bytes = initial

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *raised: object) -> None:
            """There is nothing to take away."""

        def update(self, n_bytes: int) -> None:
            self._n_bytes += n_bytes
            advance(self._n_bytes)

    return Reporting
