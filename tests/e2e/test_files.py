"""What the File and Model menus do with files, in the real window."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QLineEdit, QPushButton
from pytestqt.qtbot import QtBot
from safetensors.numpy import save_file

from explorer.actions.commands import command
from explorer.actions.file_commands import cached_commands, list_cache, save_as_commands
from explorer.actions.qt_actions import ChangingMenu
from explorer.app import Explorer
from explorer.chrome.download_dialog import DownloadDialog
from explorer.viewmodels.guidance import obstacle
from explorer.viewmodels.model_card import health
from tests.core_model.checkpoint import tiny
from tests.core_model.checkpoint.hub_stand_in import NAME, StandIn, hub_of_one_model
from tests.e2e.conftest import Launch, wait_until_idle


def test_checking_the_weights_of_what_cannot_be_run_turns_its_health_to_a_warning(
    launch: Launch, qtbot: QtBot, tmp_path: Path
) -> None:
    save_file({"strange": np.full((2, 3), np.nan, dtype=np.float32)}, tmp_path / "model.safetensors")
    explorer = launch(tmp_path)
    command("check_health").run(explorer.window.desk)
    wait_until_idle(qtbot, explorer)
    state = explorer.store.state
    assert state.model is not None and "NaN" in state.model.info.warnings[-1]
    assert state.notices[-1].severity == "warning"


def test_a_healthy_model_is_said_to_be(launch: Launch, qtbot: QtBot, model_folder: Path) -> None:
    explorer = launch(model_folder / "decoder", "a cat")
    command("check_health").run(explorer.window.desk)
    wait_until_idle(qtbot, explorer)
    state = explorer.store.state
    assert state.notices[-1].severity == "info" and "nothing to remark" in state.notices[-1].text
    assert state.model is not None and health(state.model.info)[0] == "ok"


def test_an_adapter_without_its_base_asks_for_it_and_runs_with_it(
    launch: Launch, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    base = tiny.write(tmp_path / "base")
    folder = tmp_path / "elsewhere" / "adapter"
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": "a/model"}))
    names = {"A": (2, tiny.D_MODEL), "B": (4 * tiny.D_MODEL, 2)}
    pair = {f"base_model.model.model.x.lora_{name}.weight": np.ones(size, np.float32) for name, size in names.items()}
    save_file(pair, folder / "adapter_model.safetensors")
    explorer = launch(folder)
    assert not command("give_heads").is_enabled(explorer.window.desk)
    assert command("give_base").is_enabled(explorer.window.desk)
    problem = obstacle(explorer.store.state)
    assert problem is not None and problem.remedy == "give_base" and "a/model" in problem.message
    monkeypatch.setattr(explorer.window.questions, "folder", lambda title: base)
    command("give_base").run(explorer.window.desk)
    wait_until_idle(qtbot, explorer)
    told = obstacle(explorer.store.state)  # another model's adapter: it is said which weight is not there
    assert told is not None and "changes model.x, which base has not" in told.message

    names = {name.replace("model.x", "transformer.h.0.mlp.c_fc"): tensor for name, tensor in pair.items()}
    save_file({name: tensor for name, tensor in names.items()}, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"fan_in_fan_out": True}))
    command("reopen").run(explorer.window.desk)
    wait_until_idle(qtbot, explorer)
    assert explorer.store.state.model is not None
    assert explorer.store.state.model.info.refusal is None
    assert explorer.store.state.model.info.name == "base + adapter"


def test_a_checkpoint_is_opened_with_what_is_known_of_it(launch: Launch, tmp_path: Path) -> None:
    (tiny.write(tmp_path) / "config.json").unlink()
    model = launch(tmp_path, "3 1 4", assume=(("n_heads", 4),)).store.state.current_model
    assert model is not None and model.info.sites[0].n_heads == 4


def test_the_number_of_heads_that_no_file_states_is_asked_for(
    launch: Launch, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tiny.write(tmp_path) / "config.json").unlink()
    explorer = launch(tmp_path, "3 1 4")
    assert command("give_heads").is_enabled(explorer.window.desk)
    monkeypatch.setattr(explorer.window.questions, "number", lambda title, label: 4)
    command("give_heads").run(explorer.window.desk)
    wait_until_idle(qtbot, explorer)
    model = explorer.store.state.model
    assert model is not None and model.info.sites[0].n_heads == 4


def test_models_of_the_hugging_face_cache_are_in_the_file_menu(
    launch: Launch, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    tiny.write(tmp_path / "models--someone--tiny" / "snapshots" / "abc")
    (tmp_path / "models--someone--void" / "snapshots").mkdir(parents=True)
    explorer = launch()
    desk = explorer.window.desk
    (row,) = cached_commands(desk)
    assert row.title == "Reading the cache…" and not row.is_enabled(desk)
    list_cache(desk)
    assert explorer.store.state.cache is None, "the disk is read by a worker"
    wait_until_idle(qtbot, explorer)
    whole, void = cached_commands(desk)
    assert not void.is_enabled(explorer.window.desk) and "without a snapshot" in void.tooltip
    whole.run(explorer.window.desk)
    wait_until_idle(qtbot, explorer)
    assert explorer.store.state.model is not None and explorer.store.state.model.info.name == "someone/tiny"


def test_the_open_menu_of_the_cache_fills_when_the_cache_was_listed(
    launch: Launch, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    explorer = launch()
    menus = {menu.title(): menu for menu in explorer.window.findChildren(ChangingMenu)}
    menu = menus["Open from cache"]

    def shown() -> list[str]:
        return [action.text() for action in menu.actions()]

    menu.aboutToShow.emit()
    assert shown() == ["&1 Reading the cache…"]
    qtbot.waitUntil(lambda: shown() == ["None yet"])
    menu.aboutToHide.emit()
    tiny.write(tmp_path / "models--someone--tiny" / "snapshots" / "abc")
    menu.aboutToShow.emit()
    qtbot.waitUntil(lambda: shown() == ["&1 someone/tiny"])
    menu.aboutToHide.emit()
    wait_until_idle(qtbot, explorer)


def test_a_cache_that_cannot_be_read_says_so(
    launch: Launch, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    explorer = launch()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(Path, "iterdir", refuse)
    list_cache(explorer.window.desk)
    wait_until_idle(qtbot, explorer)
    (row,) = cached_commands(explorer.window.desk)
    assert row.title == "The cache cannot be read" and "Permission denied" in row.tooltip


def test_the_open_model_is_saved_as_a_family_that_can_express_it(
    launch: Launch, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer = launch(tiny.write(tmp_path / "model"), "3 1 4")
    desk = explorer.window.desk
    gpt2 = next(row for row in save_as_commands(desk) if row.key == "save_as:gpt2")
    monkeypatch.setattr(explorer.window.questions, "new_folder", lambda title: tmp_path / "out")
    gpt2.run(desk)
    wait_until_idle(qtbot, explorer)
    assert "was saved in" in explorer.store.state.notices[-1].text
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == "gpt2"
    gpt2.run(desk)  # the folder is in use by now
    wait_until_idle(qtbot, explorer)
    notice = explorer.store.state.notices[-1]
    assert notice.severity == "error" and "choose a new folder" in notice.text


def test_a_model_no_family_can_express_has_one_row_that_says_so(launch: Launch, tmp_path: Path) -> None:
    save_file({"strange": np.ones((2, 3), dtype=np.float32)}, tmp_path / "model.safetensors")
    desk = launch(tmp_path).window.desk
    (row,) = save_as_commands(desk)
    assert not row.is_enabled(desk) and "No family" in row.title


def pickled(folder: Path) -> Path:
    import torch

    folder.mkdir()
    path = folder / "pytorch_model.bin"
    torch.save({name: torch.from_numpy(tensor) for name, tensor in tiny.tensors().items()}, path)
    (folder / "config.json").write_text(json.dumps(tiny.CONFIG))
    return path


def test_a_pickle_is_converted_with_a_yes_and_then_open(
    launch: Launch, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer = launch(pickled(tmp_path / "old"), "3 1 4")
    desk, asked = explorer.window.desk, []
    problem = explorer.controller.problem
    assert problem is not None and problem.remedy == "convert_pickle" and "never opened" in problem.message

    def answer(title: str, text: str) -> bool:
        asked.append(text)
        return len(asked) > 1

    monkeypatch.setattr(explorer.window.questions, "is_yes", answer)
    monkeypatch.setattr(explorer.window.questions, "new_folder", lambda title: tmp_path / "new")
    command("convert_pickle").run(desk)
    assert "can run code" in asked[0] and explorer.controller.is_idle, "no is no"
    command("convert_pickle").run(desk)
    wait_until_idle(qtbot, explorer)
    model = explorer.store.state.current_model
    assert model is not None and model.source.path == tmp_path / "new" and model.info.refusal is None


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with hub_of_one_model(tmp_path, monkeypatch) as server:
        yield server


def download_dialog(explorer: Explorer) -> tuple[DownloadDialog, QLineEdit, QPushButton]:
    command("download").run(explorer.window.desk)
    dialog = explorer.window.findChild(DownloadDialog)
    assert dialog is not None
    button = next(button for button in dialog.findChildren(QPushButton) if button.text() == "Download")
    return dialog, dialog.findChildren(QLineEdit)[0], button


def test_a_model_of_the_hub_is_downloaded_and_open(launch: Launch, qtbot: QtBot, hub: StandIn) -> None:
    explorer = launch()
    _, repository, button = download_dialog(explorer)
    assert not button.isEnabled()
    repository.setText("no name")
    assert not button.isEnabled()
    repository.setText(NAME)
    assert hub.asked == [], "nobody is asked before the button is pressed"
    button.click()
    wait_until_idle(qtbot, explorer)
    model = explorer.store.state.current_model
    assert model is not None and model.info.name == NAME and model.info.refusal is None
    assert explorer.store.state.notices[-1].text == f"{NAME} was downloaded."


def test_how_large_a_model_is_can_be_asked_before(launch: Launch, qtbot: QtBot, hub: StandIn) -> None:
    explorer = launch()
    dialog, repository, _ = download_dialog(explorer)
    repository.setText(NAME)
    look_up = next(button for button in dialog.findChildren(QPushButton) if button.text() == "Look up")
    look_up.click()
    wait_until_idle(qtbot, explorer)
    size = sum(len(hub.files[name]) for name in ("config.json", "model.safetensors", "vocab.json"))
    assert dialog.told.startswith(f"3 files, {round(size / 1e3)} kB; ") and hub.fetched() == []
    hub.errors[NAME] = 404, "RevisionNotFound"
    look_up.click()
    wait_until_idle(qtbot, explorer)
    assert "has no revision main" in dialog.told


def test_a_download_that_fails_is_a_notice(launch: Launch, qtbot: QtBot, hub: StandIn) -> None:
    hub.errors[NAME] = 404, "RepoNotFound"
    explorer = launch()
    _, repository, button = download_dialog(explorer)
    repository.setText(NAME)
    button.click()
    wait_until_idle(qtbot, explorer)
    notice = explorer.store.state.notices[-1]
    assert notice.severity == "error" and "is not on the Hub" in notice.text
    assert explorer.store.state.source is None
