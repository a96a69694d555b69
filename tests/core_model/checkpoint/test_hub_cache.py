"""The local cache of the Hugging Face Hub, as its library lays it out."""

from __future__ import annotations

from pathlib import Path

import pytest

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.hub_cache import cache_folder, cached_models, find_cached
from core_model.errors import CheckpointError
from tests.core_model.checkpoint import tiny


def cached(cache: Path, name: str, revision: str = "abc") -> Path:
    """The tiny model in a cache: blobs, links to them, a ref. Returns the model's folder."""
    entry = cache / f"models--{name.replace('/', '--')}"
    snapshot = entry / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (entry / "refs").mkdir()
    (entry / "refs" / "main").write_text(revision)
    tiny.write(entry / "blobs")
    for blob in (entry / "blobs").iterdir():
        (snapshot / blob.name).symlink_to(Path("../../blobs", blob.name))
    return entry


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HF_HUB_CACHE": "/a", "HF_HOME": "/b"}, "/a"),
        ({"HUGGINGFACE_HUB_CACHE": "/a", "HF_HOME": "/b"}, "/a"),
        ({"HF_HOME": "/b", "XDG_CACHE_HOME": "/c"}, "/b/hub"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"),
        ({}, str(Path.home() / ".cache/huggingface/hub")),
    ],
)
def test_the_cache_lies_where_the_hubs_library_has_it(environment: dict[str, str], expected: str) -> None:
    """https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables"""
    assert cache_folder(environment) == Path(expected)


def test_models_are_listed_by_their_names_and_open(tmp_path: Path) -> None:
    cached(tmp_path, "someone/tiny")
    cached(tmp_path, "gpt2")
    (tmp_path / "datasets--someone--data").mkdir()
    (tmp_path / "version.txt").write_text("1")
    found = cached_models(tmp_path)
    assert [(model.name, model.problem) for model in found] == [("gpt2", None), ("someone/tiny", None)]
    with open_checkpoint(found[1].folder) as checkpoint:
        assert checkpoint.info.name == "someone/tiny"
        assert checkpoint.info.refusal is None


def test_links_to_blobs_that_are_gone_are_named_in_the_list_and_when_opened(tmp_path: Path) -> None:
    entry = cached(tmp_path, "someone/tiny")
    (entry / "blobs" / "model.safetensors").unlink()
    (model,) = cached_models(tmp_path)
    assert "model.safetensors" in (model.problem or "") and "download" in (model.problem or "")
    with pytest.raises(CheckpointError, match=r"model\.safetensors in abc is a link .* download the model again"):
        open_checkpoint(entry)


def test_a_config_that_is_a_link_to_nothing_is_not_taken_for_absent(tmp_path: Path) -> None:
    entry = cached(tmp_path, "someone/tiny")
    (entry / "blobs" / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config\.json"):
        open_checkpoint(entry)


@pytest.mark.parametrize(("missing", "word"), [("snapshot", "without a snapshot"), ("weights", "no .safetensors")])
def test_an_entry_that_was_never_completed_says_so(missing: str, word: str, tmp_path: Path) -> None:
    snapshots = tmp_path / "models--someone--tiny" / "snapshots"
    (snapshots if missing == "snapshot" else snapshots / "abc").mkdir(parents=True)
    (model,) = cached_models(tmp_path)
    assert word in (model.problem or "")


def test_no_cache_holds_no_models(tmp_path: Path) -> None:
    assert cached_models(tmp_path / "none") == ()


@pytest.mark.parametrize(
    ("name", "is_found"),
    [("someone/tiny", True), ("someone/other", False), ("../tiny", False), ("/someone/tiny", False), ("a/b/c", False)],
)
def test_a_model_is_found_by_its_name_alone(name: str, is_found: bool, tmp_path: Path) -> None:
    entry = cached(tmp_path, "someone/tiny")
    assert find_cached(name, tmp_path) == (entry if is_found else None)
