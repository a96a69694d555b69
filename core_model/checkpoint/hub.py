"""Fetching a model from the Hugging Face Hub into its local cache: the one place that opens a connection.

Only safetensors, config and tokenizer files are fetched, with the Hub's own library, which is imported when a download
begins, and which takes the person's token from its own store. What was fetched is not fetched again: a download that
was stopped, broke off or was killed goes on with the next byte.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from core_model.cancel import CancelToken, Progress
from core_model.checkpoint.families import OWN_DOCUMENTS
from core_model.checkpoint.folder import (
    ADAPTER_CONFIG_NAME,
    CONFIG_NAME,
    INDEX_SUFFIX,
    INPUT_FILES,
    WEIGHTS_SUFFIX,
)
from core_model.checkpoint.hub_cache import cache_folder, is_repository
from core_model.checkpoint.hub_file import fetch_file, is_fetched, n_begun
from core_model.checkpoint.hub_offer import Offer, size_text
from core_model.disk import free_bytes, why_not_written
from core_model.errors import CheckpointError
from core_model.wording import shown, some_of

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import ModelInfo as Listing

_BESIDE = (CONFIG_NAME, *OWN_DOCUMENTS, ADAPTER_CONFIG_NAME, *INPUT_FILES)
_PLAIN_NAME = re.compile(r"\w[\w.-]*")
_REVISION = re.compile(r"\w[\w./-]*", re.ASCII)
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_TIMEOUT_SECONDS = 10
_PIECE_BYTES = 256 << 10


def look_up(repository: str, revision: str = "main") -> Offer:
    """Ask the Hub what a model would need, and fetch nothing. Runs on a worker thread.

    CheckpointError says in a sentence what stands in the way.
    """
    with _connected(repository, revision) as api:
        return _offer(api, repository, revision)


def download(
    repository: str,
    revision: str = "main",
    *,
    offered: Callable[[Offer], None] | None = None,
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> Path:
    """Fetch a model such as "openai-community/gpt2", and return its folder in the cache. Runs on a worker thread.

    HF_ENDPOINT and the cache's variables are respected. `offered` is told what is to come before the first file is
    asked for. CheckpointError says in a sentence what stands in the way; Cancelled, as any other end, leaves what was
    fetched for the next time.
    """
    with _connected(repository, revision) as api:
        offer = _offer(api, repository, revision)
        _require_possible(offer)
        if offered is not None:
            offered(offer)
        return _fetch(api, offer, cancel or CancelToken(), progress)


@contextmanager
def _connected(repository: str, revision: str) -> Iterator[HfApi]:
    """The Hub's library, set up; its errors as sentences."""
    if not is_repository(repository):
        raise CheckpointError(
            f"{shown(repr(repository))} is no name of a model on the Hub: one looks like openai-community/gpt2"
        )
    if not _REVISION.fullmatch(revision):
        raise CheckpointError(f"{shown(repr(revision))} is no revision: give a branch, a tag or a commit")
    from huggingface_hub import HfApi, close_session, constants

    constants.HF_HUB_DISABLE_TELEMETRY = True  # or it tells the Hub what else is installed and runs
    constants.DOWNLOAD_CHUNK_SIZE = min(constants.DOWNLOAD_CHUNK_SIZE, _PIECE_BYTES)  # told, and stopped, so often
    endpoint = os.environ.get("HF_ENDPOINT") or constants.ENDPOINT
    with _told(repository, revision, endpoint):
        try:
            yield HfApi(endpoint=endpoint)
        finally:
            close_session()


def _offer(api: HfApi, repository: str, revision: str) -> Offer:
    """What the Hub lists, held against the cache."""
    listing = api.model_info(repository, revision=revision, files_metadata=True, timeout=_TIMEOUT_SECONDS)
    files, cache, commit = _wanted(repository, listing), cache_folder(), str(listing.sha)
    missing = sum(size for name, size in files.items() if not is_fetched(cache, repository, commit, name))
    return Offer(
        repository=repository,
        commit=commit,
        files=files,
        n_missing=max(missing - n_begun(cache, repository), 0),
        n_free=free_bytes(cache),
    )


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


def _require_possible(offer: Offer) -> None:
    """Refuse to begin what cannot end well."""
    from huggingface_hub import constants

    most = constants.MAX_HTTP_DOWNLOAD_SIZE
    if too_large := [name for name, size in offer.files.items() if size > most]:
        raise CheckpointError(
            f"{some_of(too_large)} of {offer.repository} has more than the {size_text(most)} that the Hub gives by "
            f"plain HTTP: fetch it with `hf download {offer.repository}`, then open it from the cache"
        )
    if offer.n_missing > offer.n_free:
        raise CheckpointError(
            f"{offer.repository} needs {size_text(offer.n_missing)} more, and {size_text(offer.n_free)} are free in "
            f"{shown(cache_folder())}: free some space, or set HF_HUB_CACHE to a folder on another disk"
        )


def _fetch(api: HfApi, offer: Offer, cancel: CancelToken, progress: Progress | None) -> Path:
    """All files into the cache, one after another; the folder they lie in."""
    total, done = max(offer.n_bytes, 1), 0
    folder = None
    for name, size in offer.files.items():
        cancel.check()

        def advance(n_bytes: int, before: int = done, most: int = size) -> None:
            cancel.check()
            if progress is not None:
                progress(min((before + min(n_bytes, most)) / total, 1.0))

        path = fetch_file(cache_folder(), api.endpoint, offer.repository, offer.commit, name, advance)
        folder = path.parent
        done += size
    assert folder is not None, "there are weights to fetch"
    return folder


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
        if status == 403:
            told = f"ask its owner for access, or {log_in} as somebody who has it"
            raise CheckpointError(f"the Hub does not give {repository} to you (403): {told}") from error
        raise CheckpointError(f"the Hub answered {status} for {repository}: try again later") from error
    except (HTTPError, errors.LocalEntryNotFoundError, ConnectionError, TimeoutError) as error:
        raise CheckpointError(
            f"{shown(endpoint)} cannot be reached: check the connection and try again, what was fetched is kept"
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
