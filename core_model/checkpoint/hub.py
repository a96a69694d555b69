"""Fetching a model from the Hugging Face Hub into its local cache: the one place that opens a connection.

Only safetensors, config and tokenizer files are fetched, with the Hub's own library, which is imported here and
nowhere else, and which takes the person's token from its own store. Files that were fetched whole are not fetched
again: a download that was stopped goes on with the file it was at (that library starts a file from its beginning).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from core_model.cancel import CancelToken, Progress
from core_model.checkpoint.export import TOKENIZER_FILES
from core_model.checkpoint.folder import ADAPTER_CONFIG_NAME, CONFIG_NAME, INDEX_SUFFIX, WEIGHTS_SUFFIX
from core_model.checkpoint.hub_cache import cache_folder, is_repository
from core_model.checkpoint.wording import shown, some_of
from core_model.disk import why_not_written
from core_model.errors import CheckpointError

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import ModelInfo as Listing

_BESIDE = (CONFIG_NAME, ADAPTER_CONFIG_NAME, "preprocessor_config.json", *TOKENIZER_FILES)
_PLAIN_NAME = re.compile(r"\w[\w.-]*")
_REVISION = re.compile(r"\w[\w./-]*", re.ASCII)
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_TIMEOUT_SECONDS = 10
_PIECE_BYTES = 256 << 10


def download(
    repository: str,
    revision: str = "main",
    *,
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> Path:
    """Fetch a model such as "openai-community/gpt2", and return its folder in the cache. Runs on a worker thread.

    HF_ENDPOINT and the cache's variables are respected. CheckpointError says in a sentence what stands in the way;
    Cancelled leaves the files that were fetched whole for the next time.
    """
    if not is_repository(repository):
        raise CheckpointError(
            f"{shown(repr(repository))} is no name of a model on the Hub: one looks like openai-community/gpt2"
        )
    if not _REVISION.fullmatch(revision):
        raise CheckpointError(f"{shown(repr(revision))} is no revision: give a branch, a tag or a commit")
    from huggingface_hub import HfApi, close_session, constants

    constants.HF_HUB_DISABLE_TELEMETRY = True  # or it asks for a registry and tells what else is installed
    constants.HF_HUB_DISABLE_XET = True  # its transfers cannot be stopped between two pieces
    constants.DOWNLOAD_CHUNK_SIZE = min(constants.DOWNLOAD_CHUNK_SIZE, _PIECE_BYTES)  # told, and stopped, so often
    endpoint = os.environ.get("HF_ENDPOINT") or constants.ENDPOINT
    with _told(repository, revision, endpoint):
        api = HfApi(endpoint=endpoint)
        try:
            listing = api.model_info(repository, revision=revision, files_metadata=True, timeout=_TIMEOUT_SECONDS)
            sizes = _wanted(repository, listing)
            return _fetch(api, repository, str(listing.sha), sizes, cancel or CancelToken(), progress)
        finally:
            close_session()


def _wanted(repository: str, listing: Listing) -> dict[str, int]:
    """Name -> bytes of the files to fetch, small ones first; CheckpointError when there are no weights to open."""
    held = {file.rfilename: file.size or 0 for file in listing.siblings or () if _PLAIN_NAME.fullmatch(file.rfilename)}
    weights = [name for name in held if name.endswith(WEIGHTS_SUFFIX)]
    shards = [name for name in weights if _SHARD.fullmatch(name)]
    if f"model{WEIGHTS_SUFFIX}" in weights:
        weights = [f"model{WEIGHTS_SUFFIX}"]
    elif shards:
        weights = shards
    if not weights:
        others = [name for name in held if name.endswith((".bin", ".pt", ".pth", ".h5", ".msgpack", ".gguf"))]
        has = f"it has {some_of(others)}, which are not fetched" if others else "there is nothing to open"
        raise CheckpointError(
            f"{repository} has no .safetensors file: {has}; choose another model, or a revision with safetensors"
        )
    beside = [name for name in held if name in _BESIDE or name.endswith(INDEX_SUFFIX)]
    return {name: held[name] for name in (*sorted(beside), *sorted(weights))}


def _fetch(
    api: HfApi, repository: str, commit: str, sizes: dict[str, int], cancel: CancelToken, progress: Progress | None
) -> Path:
    """All files into the cache, one after another; the folder they lie in."""
    total, done = max(sum(sizes.values()), 1), 0
    folder = None
    for name, size in sizes.items():
        cancel.check()

        def advance(n_bytes: int, before: int = done, most: int = size) -> None:
            cancel.check()
            if progress is not None:
                progress(min((before + min(n_bytes, most)) / total, 1.0))

        path = api.hf_hub_download(
            repository, name, revision=commit, cache_dir=cache_folder(), tqdm_class=_reporting(advance)
        )
        folder = Path(str(path)).parent
        done += size
    assert folder is not None, "there are weights to fetch"
    return folder


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


@contextmanager
def _told(repository: str, revision: str, endpoint: str) -> Iterator[None]:
    """Errors of the Hub's library as sentences."""
    from httpx2 import HTTPError
    from huggingface_hub import errors

    log_in = "log in with `hf auth login`"
    try:
        yield
    except errors.GatedRepoError as error:
        told = f"asks for its conditions to be accepted: do so on its page, then {log_in}"
        raise CheckpointError(f"{repository} {told}") from error
    except errors.RepositoryNotFoundError as error:
        raise CheckpointError(
            f"{repository} is not on the Hub, or it is private: check its name, or {log_in}"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise CheckpointError(f"{repository} has no revision {shown(revision)}: check its branches and tags") from error
    except errors.OfflineModeIsEnabled as error:
        raise CheckpointError("HF_HUB_OFFLINE forbids connections: unset it to download") from error
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "an unknown status")
        if status == 401:
            raise CheckpointError(f"the Hub asks who you are before it gives {repository}: {log_in}") from error
        raise CheckpointError(f"the Hub answered {status} for {repository}: try again later") from error
    except (HTTPError, errors.LocalEntryNotFoundError, ConnectionError, TimeoutError) as error:
        raise CheckpointError(
            f"{shown(endpoint)} cannot be reached: check the connection and try again, whole files are kept"
        ) from error
    except (errors.FileMetadataError, ValueError) as error:
        raise CheckpointError(
            f"{shown(endpoint)} does not answer as the Hub does: is a login page or a proxy in between?"
        ) from error
    except OSError as error:
        cache = cache_folder()
        raise CheckpointError(
            f"{repository} cannot be stored in {shown(cache)}: {why_not_written(error, cache)}", path=cache
        ) from error
