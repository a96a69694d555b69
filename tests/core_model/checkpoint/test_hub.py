"""Downloading from the Hub, against a stand-in on this machine."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants
from huggingface_hub.utils import WeakFileLock

from core_model.cancel import CancelToken
from core_model.checkpoint import hub_file, open_checkpoint
from core_model.checkpoint.hub import download, look_up
from core_model.checkpoint.hub_cache import cached_models
from core_model.errors import Cancelled, CheckpointError
from tests.core_model.checkpoint import tiny
from tests.core_model.checkpoint.hub_stand_in import COMMIT, NAME, StandIn, hub_of_one_model, serving

WEIGHTS = "model.safetensors"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with hub_of_one_model(tmp_path, monkeypatch) as server:
        yield server


def begin(hub: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetch the beginning of the weights, and stop."""
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 500)
    cancel = CancelToken()
    with pytest.raises(Cancelled):
        download(NAME, cancel=cancel, progress=lambda fraction: cancel.cancel() if fraction > 0.5 else None)
    hub.asked.clear()


def unfinished(folder: Path) -> Path:
    """The file that was begun."""
    (found,) = folder.rglob("*.incomplete")
    return found


def test_only_weights_config_and_tokenizer_are_fetched_and_open(hub: StandIn) -> None:
    told: list[float] = []
    folder = download(NAME, progress=told.append)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "vocab.json"]
    assert sorted(set(hub.fetched())) == ["config.json", "model.safetensors", "vocab.json"]
    assert all(NAME in path for _, path, _ in hub.asked), "nothing but the model is asked for"
    assert told == sorted(told) and told[-1] == 1.0
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.name == NAME and checkpoint.info.refusal is None
    assert [(model.name, model.problem) for model in cached_models()] == [(NAME, None)]


def test_what_is_there_is_not_fetched_again(hub: StandIn) -> None:
    first = download(NAME)
    hub.asked.clear()
    assert download(NAME) == first and hub.fetched() == []


def test_the_revision_asked_for_is_fetched_by_its_commit(hub: StandIn) -> None:
    assert download(NAME, "refs/pr/3").name == COMMIT
    listing = hub.asked[0][1]
    assert listing.replace("%2F", "/").endswith("/revision/refs/pr/3")
    assert all(f"/resolve/{COMMIT}/" in path for _, path, _ in hub.asked[1:])


def test_a_download_that_was_stopped_goes_on_with_the_next_byte(
    hub: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(hub, monkeypatch)
    n_there = unfinished(tmp_path).stat().st_size
    assert 0 < n_there < len(hub.files[WEIGHTS])
    told: list[float] = []
    folder = download(NAME, progress=told.append)
    assert [(path.rpartition("/")[2], asked) for method, path, asked in hub.asked if method == "GET" and asked] == [
        (WEIGHTS, f"bytes={n_there}-")
    ]
    assert hub.fetched() == [WEIGHTS] and told[0] > 0.5
    assert (folder / WEIGHTS).read_bytes() == hub.files[WEIGHTS]
    assert not list(tmp_path.rglob("*.incomplete"))


def test_a_download_that_was_killed_goes_on_with_the_next_byte(hub: StandIn, tmp_path: Path) -> None:
    hub.files[WEIGHTS] = random.Random(0).randbytes(2 << 20)
    hub.stops_after = 1 << 20
    code = f"from core_model.checkpoint.hub import download; download({NAME!r})"
    online = {**os.environ, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}
    with subprocess.Popen([sys.executable, "-c", code], env=online) as child:
        assert hub.has_stopped.wait(30)
        while not (found := list(tmp_path.rglob("*.incomplete"))) or found[0].stat().st_size < 1 << 19:
            assert child.poll() is None
        child.kill()
    hub.let_go.set()
    hub.stops_after = None
    n_there = unfinished(tmp_path).stat().st_size
    hub.asked.clear()
    folder = download(NAME)
    assert ("GET", f"bytes={n_there}-") in [(method, asked) for method, _, asked in hub.asked]
    assert (folder / WEIGHTS).read_bytes() == hub.files[WEIGHTS]


def test_a_server_that_knows_no_ranges_sends_all_of_it_again(hub: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(hub, monkeypatch)
    hub.knows_ranges = False
    assert (download(NAME) / WEIGHTS).read_bytes() == hub.files[WEIGHTS]


def test_what_arrived_damaged_is_refused_and_fetched_anew(
    hub: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(hub, monkeypatch)
    partial = unfinished(tmp_path)
    partial.write_bytes(bytes(partial.stat().st_size))
    with pytest.raises(CheckpointError, match=r"arrived damaged.*download it again"):
        download(NAME)
    assert (download(NAME) / WEIGHTS).read_bytes() == hub.files[WEIGHTS]


def test_a_file_that_is_being_fetched_is_left_to_who_fetches_it(
    hub: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(hub, monkeypatch)
    monkeypatch.setattr(hub_file, "_WAIT_SECONDS", 0.01)
    etag = unfinished(tmp_path).name.removesuffix(".incomplete")
    lock = tmp_path / "cache" / ".locks" / "models--someone--tiny" / f"{etag}.lock"
    with WeakFileLock(lock), pytest.raises(CheckpointError, match="another program is downloading"):
        download(NAME)


def test_the_size_is_known_before(hub: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["config.json", "model.safetensors", "vocab.json"]
    offer = look_up(NAME)
    assert offer.files == {name: len(hub.files[name]) for name in wanted} and hub.fetched() == []
    assert offer.n_missing == offer.n_bytes
    begin(hub, monkeypatch)
    assert look_up(NAME).n_missing == len(hub.files[WEIGHTS]) - unfinished(tmp_path).stat().st_size
    download(NAME)
    assert look_up(NAME).n_missing == 0


def test_a_disk_too_small_is_said_before(hub: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core_model.checkpoint.hub.free_bytes", lambda path: 1000)
    with pytest.raises(CheckpointError, match=r"needs \d+ kB more, and 1 kB are free in .*: free some space"):
        download(NAME)
    assert hub.fetched() == []


def test_a_disk_that_fills_up_is_said(hub: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("huggingface_hub.file_download.http_get", full)
    with pytest.raises(CheckpointError, match=r"cannot be stored in .*the disk is full"):
        download(NAME)


def test_a_file_larger_than_the_hub_gives_by_http_is_said_before(hub: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "MAX_HTTP_DOWNLOAD_SIZE", 1000)
    with pytest.raises(CheckpointError, match=r"model\.safetensors of .* has more than .*: fetch it with `hf download"):
        download(NAME)
    assert hub.fetched() == []


def test_shards_come_with_their_index(hub: StandIn, tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    tiny.write_shards(folder)
    hub.files = {path.name: path.read_bytes() for path in folder.iterdir()} | {"consolidated.safetensors": b"x"}
    with open_checkpoint(download(NAME)) as checkpoint:
        assert checkpoint.info.refusal is None
    assert "consolidated.safetensors" not in hub.fetched()


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (404, "RepoNotFound", "is not on the Hub, or it is private"),
        (401, "", "asks who you are"),
        (403, "GatedRepo", "asks for its conditions to be accepted"),
        (403, "", "does not give someone/tiny to you"),
        (404, "RevisionNotFound", "has no revision main"),
        (400, "", "the Hub answered 400"),
    ],
)
def test_the_hubs_refusals_are_sentences_with_a_next_step(status: int, code: str, words: str, hub: StandIn) -> None:
    hub.errors[NAME] = status, code
    with pytest.raises(CheckpointError, match=words) as raised:
        download(NAME)
    assert "\n" not in str(raised.value)


def test_a_login_page_in_between_is_recognised(hub: StandIn) -> None:
    hub.body = b"<html>Welcome to the airport</html>"
    with pytest.raises(CheckpointError, match="does not answer as the Hub does"):
        download(NAME)


def test_pickles_are_not_fetched(hub: StandIn) -> None:
    del hub.files["model.safetensors"], hub.files["model.fp16.safetensors"]
    with pytest.raises(CheckpointError, match=r"has no \.safetensors file: it has pytorch_model\.bin"):
        download(NAME)
    assert hub.fetched() == []


def test_names_that_lead_out_of_the_folder_are_left_alone(hub: StandIn) -> None:
    hub.files |= {"../escape.safetensors": b"x", "/etc/config.json": b"x", "text/model.safetensors": b"x"}
    folder = download(NAME)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "vocab.json"]


def test_a_wish_to_stay_offline_is_respected(hub: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError, match="HF_HUB_OFFLINE forbids connections"):
        download(NAME)
    assert hub.asked == []


def test_no_connection_is_said(hub: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(NAME, {}) as gone:
        url = gone.url
    monkeypatch.setenv("HF_ENDPOINT", url)
    with pytest.raises(CheckpointError, match=r"cannot be reached: check the connection"):
        download(NAME)


@pytest.mark.parametrize(
    ("name", "revision"), [("", "main"), ("a/b/c", "main"), ("../x", "main"), (NAME, "a b"), (NAME, "")]
)
def test_a_name_that_is_none_asks_nobody(name: str, revision: str, hub: StandIn) -> None:
    with pytest.raises(CheckpointError, match=r"is no (name|revision)"):
        download(name, revision)
    assert hub.asked == []


def test_the_persons_token_is_taken_from_its_own_store(
    hub: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(huggingface_hub.utils._headers, "get_token", lambda: seen.append("asked") or None)
    download(NAME)
    assert seen


def test_the_hubs_library_is_imported_by_a_download_only() -> None:
    code = "import sys, core_model.checkpoint.hub, core_model.checkpoint.open; print('huggingface_hub' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
