"""The whole application in its real window, over models saved at test time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer.app import Explorer, build
from explorer.settings.schema import Settings
from explorer.settings.store import SettingsStore
from explorer.state.app_state import ModelInput
from explorer.state.source import Assumed
from tests.explorer.models import save_decoder, save_encoder, save_encoder_decoder

PATIENCE_MS = 30_000

Launch = Callable[..., Explorer]


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save_decoder(folder / "decoder")
    save_encoder(folder / "encoder")
    save_encoder(folder / "bare", with_tokenizer=False)
    save_encoder_decoder(folder / "translator")
    return folder


@pytest.fixture
def launch(qtbot: QtBot, qapp: QApplication) -> Iterator[Launch]:
    """Start the application on screen: `launch(path, text)`; idle when it returns, unless told otherwise."""
    started: list[Explorer] = []

    def start(
        path: Path | None = None,
        text: str = "",
        *,
        settings: Settings | None = None,
        keeper: SettingsStore | None = None,
        is_awaited: bool = True,
        assume: Assumed = (),
        target: str = "",
    ) -> Explorer:
        explorer = build(qapp, settings or Settings(theme="light"), keeper=keeper, samples=())
        started.append(explorer)
        explorer.window.resize(1280, 800)
        with qtbot.waitExposed(explorer.window):
            explorer.window.show()
        explorer.start(path, ModelInput(text=text, target=target), assume=assume)
        if is_awaited:
            wait_until_idle(qtbot, explorer)
        return explorer

    yield start
    for explorer in started:
        explorer.close()
    qapp.setStyleSheet("")


def wait_until_idle(qtbot: QtBot, explorer: Explorer) -> None:
    """Until every answer is drawn."""
    qtbot.waitUntil(lambda: explorer.controller.is_idle, timeout=PATIENCE_MS)
