from __future__ import annotations

import os
from pathlib import Path

import pytest

from explorer.settings.remember import settings_of, state_of
from explorer.settings.schema import Settings, WindowSettings
from explorer.settings.store import SettingsStore, settings_path

SETTINGS = Settings(
    theme="dark",
    layout="train",
    scale="log",
    colormap="magma",
    recent=("/models/a", "/models/b"),
    window=WindowSettings(geometry="QUJD", docks={"explore": "REVG"}),
)


def test_settings_lie_where_the_environment_says(user_folders: Path) -> None:
    if os.name == "posix" and os.uname().sysname == "Linux":
        assert settings_path() == user_folders / "XDG_CONFIG_HOME" / "transformer-explorer" / "settings.json"


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    store = SettingsStore(tmp_path / "new" / "settings.json")
    store.save(SETTINGS)
    assert store.load() == (SETTINGS, None)


def test_the_first_start_has_defaults_and_says_nothing(tmp_path: Path) -> None:
    assert SettingsStore(tmp_path / "settings.json").load() == (Settings(), None)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b'{"theme": "pink"}',
        b'{"version": 2}',
        b'{"recent": 5}',
        b"\xff\xfe",
        b'{"window": {"docks": {"x": ""}}}',
    ],
)
def test_a_damaged_file_is_set_aside_and_said(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(damage)
    settings, trouble = SettingsStore(path).load()
    assert settings == Settings()
    kept = tmp_path / "settings.damaged-1.json"
    assert kept.read_bytes() == damage
    assert trouble is not None
    assert str(kept) in trouble
    assert not path.exists()


def test_a_second_damaged_file_does_not_replace_the_first(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    for damage in (b"one", b"two"):
        path.write_bytes(damage)
        SettingsStore(path).load()
    assert (tmp_path / "settings.damaged-1.json").read_bytes() == b"one"
    assert (tmp_path / "settings.damaged-2.json").read_bytes() == b"two"


def test_a_key_of_a_newer_version_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"version": 1, "theme": "light", "font": "large"}', encoding="utf-8")
    assert SettingsStore(path).load() == (Settings(theme="light"), None)


def test_a_failed_save_keeps_the_old_file_and_leaves_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SettingsStore(tmp_path / "settings.json")
    store.save(SETTINGS)

    def refuse(*arguments: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        store.save(Settings())
    assert store.load() == (SETTINGS, None)
    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]


def test_settings_kept_elsewhere_behind_a_link_stay_there(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept.json", tmp_path / "settings.json"
    link.symlink_to(kept)
    SettingsStore(link).save(SETTINGS)
    assert link.is_symlink()
    assert SettingsStore(kept).load() == (SETTINGS, None)


def test_what_is_remembered_comes_back_into_the_state() -> None:
    assert settings_of(state_of(SETTINGS), SETTINGS.window) == SETTINGS


def test_recent_paths_that_an_older_version_wrote_relative_are_dropped() -> None:
    assert state_of(Settings(recent=("../m", "/models/a", "m"))).recent == (Path("/models/a"),)
