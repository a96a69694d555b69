"""Downloading from the Hub, against a stand-in on this machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from core_model.cancel import CancelToken
from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.hub import download
from core_model.checkpoint.hub_cache import cached_models
from core_model.errors import Cancelled, CheckpointError
from tests.core_model.checkpoint import tiny
from tests.core_model.checkpoint.hub_stand_in import COMMIT, NAME, StandIn, hub_of_one_model, serving


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with hub_of_one_model(tmp_path, monkeypatch) as server:
        yield server


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


def test_a_download_that_was_stopped_goes_on_with_the_file_it_was_at(
    hub: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 500)
    cancel = CancelToken()

    def stop_in_the_weights(fraction: float) -> None:
        if fraction > 0.5:
            cancel.cancel()

    with pytest.raises(Cancelled):
        download(NAME, cancel=cancel, progress=stop_in_the_weights)
    assert not list(tmp_path.rglob("*.incomplete"))
    hub.asked.clear()
    folder = download(NAME)
    assert hub.fetched() == ["model.safetensors"]
    assert (folder / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


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
